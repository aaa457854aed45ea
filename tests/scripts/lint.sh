#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# clang-tidy (by .clang-tidy) and cppcheck over the C sources of ref and capi.
#
#   sh tests/scripts/lint.sh
set -u
export LC_ALL=C

missing=
for program in clang-tidy cppcheck; do
    command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
done
[ -z "$missing" ] || {
    echo "lint: missing Debian packages:$missing" \
        "(apt-get install --no-install-recommends$missing)" >&2
    exit 1
}

sources=$(find ref capi -type f -name '*.c' | sort)
[ -n "$sources" ] || {
    echo "lint: no sources found; run it from the repository root" >&2
    exit 2
}
log=$(mktemp) || exit 2
trap 'rm -f "$log"' EXIT
failed=0

# One word a file: the names have no blanks.
# shellcheck disable=SC2086
flags="-std=c11 -D_POSIX_C_SOURCE=200809L -I. -Iref -Icapi -Ikernels -pthread"
clang-tidy --quiet $sources -- $flags >"$log" 2>&1 || failed=1
noise='^[0-9]+ warnings? (and [0-9]+ errors? )?(generated|treated)|^Suppressed |^Use -header-filter'
grep -v -E "$noise" "$log"

cppcheck --quiet --std=c11 --language=c --enable=warning,performance,portability \
    --inline-suppr --suppress=missingIncludeSystem \
    --suppress=duplicateAssignExpression --suppress=ctuuninitvar \
    --error-exitcode=1 -I. -Iref -Icapi -Ikernels \
    --template='{file}:{line}: {severity}: {id}: {message}' ref capi || failed=1

count=$(printf '%s\n' "$sources" | awk 'END { print NR }')
[ "$failed" -eq 0 ] || {
    echo "lint: failed"
    exit 1
}
echo "lint: $count files, 0 findings"
