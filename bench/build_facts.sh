#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes what results say of the build, lines "name value": build_facts.sh OUT
# OUT is written only where it would change. It has no path: results are for others to read.
set -eu
commit=$(git rev-parse HEAD 2> /dev/null || echo unknown)
if [ -n "$(git status --porcelain 2> /dev/null)" ]; then
    commit="$commit with changes"
fi
{
    echo "commit $commit"
    echo "sources_sha256 $(sh tests/scripts/source_hash.sh)"
    echo "built $(sed 's|/[^ ]*|(path)|g' out/cuda/status.txt)"
} > "$1.part"
if cmp -s "$1.part" "$1"; then
    rm "$1.part"
else
    mv "$1.part" "$1"
fi
