#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Completes out/gpu-kit/: run.sh, the tool with its libraries, named cases, and kit.txt ($1) with
# commit and source hash.
set -eu
kit=$(dirname "$1")
mkdir -p "$kit"
cp tests/scripts/gpu_kit_run.sh "$kit/run.sh"
cp bench/limits.txt "$kit/"
commit=$(git rev-parse HEAD 2> /dev/null || echo unknown)
if [ -n "$(git status --porcelain 2> /dev/null)" ]; then
    commit="$commit with changes"
fi
{
    echo "commit $commit"
    echo "sources_sha256 $(sh tests/scripts/source_hash.sh)"
    echo "built $(cat out/cuda/status.txt)"
} > "$1"
if [ "$(head -c 4 out/cuda/status.txt)" != SKIP ]; then
    cp out/kdtr out/libkdtr.so.0 out/libkdtr_cuda.so.0 "$kit/"
fi
