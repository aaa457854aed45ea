#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Completes out/gpu-kit/: run.sh, the tool with its libraries, limits, and kit.txt ($1) with commit
# and source hash.
set -eu
kit=$(dirname "$1")
mkdir -p "$kit"
rm -f "$kit/bench_gpu" # of kits before `kdtr bench`
cp tests/scripts/gpu_kit_run.sh "$kit/run.sh"
cp out/limits.txt "$kit/"
cp out/kit.txt "$1"
if [ "$(head -c 4 out/cuda/status.txt)" != SKIP ]; then
    cp out/kdtr out/libkdtr.so.0 out/libkdtr_cuda.so.0 out/libkdtr_bench.so.0 "$kit/"
fi
