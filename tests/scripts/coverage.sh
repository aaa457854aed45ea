#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Line coverage by the suites, with floors: 95 % of ref/ and capi/, 90 % of kernels/ (emulated).
#   coverage.sh PROGRAMS...
# Runs the programs of the coverage build and reports with gcovr to out/coverage/.
set -u
if ! command -v gcovr > /dev/null; then
    echo "coverage: install the Debian package gcovr" >&2
    exit 2
fi
find out/coverage -name '*.gcda' -delete
for program in "$@"; do
    # Check's children write their counts at exit; small cases cover the same lines.
    KDTR_TEST_SCALE=small "$program" > "$program.log" 2>&1 || {
        cat "$program.log"
        echo "coverage: $program failed" >&2
        exit 1
    }
done
failed=0
report() {
    folder=$1
    floor=$2
    shift 2
    echo "== $folder (floor $floor %)"
    gcovr --root . --filter "$folder/" "$@" --exclude-unreachable-branches \
        --print-summary --fail-under-line "$floor" out/coverage ||
        failed=1
}
report ref 95
report capi 95 --exclude capi/tool/ --exclude capi/examples/
report kernels 90
exit $failed
