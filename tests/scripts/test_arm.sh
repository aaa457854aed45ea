#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The reference's bits on aarch64 under qemu-user (part of gate P0-3): test_arm.sh
# Builds ref_bits statically with the cross compiler at -O0 and -O3, compares the hashes of the
# named cases, all but the 245 MB one, and writes out/arm/arm.log.
set -u
mkdir -p out/arm
compiler=aarch64-linux-gnu-gcc
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64)
if [ -z "$qemu" ] || ! command -v $compiler > /dev/null; then
    echo "test-arm: needs gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user" >&2
    exit 2
fi
{
    echo "PLACE cpu"
    echo "device aarch64 under $("$qemu" --version | head -n 1)"
    echo "system $($compiler --version | head -n 1)"
    echo "commit $(git rev-parse HEAD 2> /dev/null || echo unknown)"
    echo "date $(date -u +%Y-%m-%d)"
    echo "sources_sha256 $(sh tests/scripts/source_hash.sh)"
    failed=0
    for level in -O0 -O3; do
        program=out/arm/ref_bits$level
        sh tests/scripts/bits_build.sh "$program" $compiler $level -static -ffp-contract=off -- \
            tests/ref_bits.c ref/*.c || failed=1
        KDTR_TEST_SCALE=small sh tests/scripts/golden.sh P0-3 "aarch64$level" "$program" "$qemu" ||
            failed=1
    done
    echo "EXIT $failed"
} 2>&1 | tee out/arm/arm.log
grep -q '^EXIT 0$' out/arm/arm.log
