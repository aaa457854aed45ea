#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds ref_bits with one compiler and set of flags: bits_build.sh OUT COMPILER FLAGS... -- SOURCES
# Where the compiler is missing OUT is a file that starts with SKIP.
set -eu
out=$1
compiler=$2
shift 2
mkdir -p "$(dirname "$out")"
if ! command -v "$compiler" > /dev/null; then
    echo "SKIP $compiler is not installed" > "$out"
    exit 0
fi
flags=
while [ "$1" != -- ]; do
    flags="$flags $1"
    shift
done
shift
rm -f "$out"
# shellcheck disable=SC2086 # the flags are meant to split
"$compiler" -std=c11 $flags -Iref "$@" -o "$out" -lm
