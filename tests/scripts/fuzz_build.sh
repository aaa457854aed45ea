#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzzer of the bundle reader: fuzz_build.sh OUT SOURCES...
# Where there is no clang, or none with libFuzzer, OUT is a file that starts with SKIP.
set -eu
out=$1
shift
mkdir -p "$(dirname "$out")"
if ! command -v clang > /dev/null; then
    echo "SKIP clang is not installed" > "$out"
    exit 0
fi
cat > "$out.c" << 'END'
#include <stddef.h>
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    return (int)(data == NULL && size > 0) * 0;
}
END
sanitize="-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all"
rm -f "$out"
# shellcheck disable=SC2086 # the flags are meant to split
if ! clang $sanitize "$out.c" -o "$out" 2> "$out.log"; then
    rm -f "$out.c"
    echo "SKIP clang has no libFuzzer (Debian package libclang-rt-dev)" > "$out"
    exit 0
fi
rm -f "$out.c" "$out"
# Comparisons are not traced: the mutator knows the format, and this is a third faster.
# shellcheck disable=SC2086
clang -std=c11 -D_POSIX_C_SOURCE=200809L -O3 -g -ffp-contract=off -Wall -Wextra -Werror $sanitize \
    -fno-sanitize-coverage=trace-cmp \
    -fsanitize-coverage-ignorelist=tests/fuzz/coverage_ignore.txt \
    -fsanitize-ignorelist=tests/fuzz/sanitizer_ignore.txt \
    -Iref -Icapi -Ikernels -Itests/fuzz "$@" -o "$out" -lm -pthread
