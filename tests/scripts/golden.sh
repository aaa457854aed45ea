#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Hashes every named case that a build of ref_bits writes; compares with tests/data/golden.sha256:
#   golden.sh GATE LABEL PROGRAM [RUNNER...]
# Inputs and the reference's outputs are both in a bundle, so equal hashes are equal bits.
# A PROGRAM that starts with SKIP says why it could not be built. KDTR_TEST_SCALE=small leaves out
# the 245 MB case.
set -u
gate=$1
label=$2
program=$3
shift 3
if [ "$(head -c 4 "$program")" = SKIP ]; then
    echo "skip $gate $label: $(sed 's/^SKIP //' "$program")"
    exit 0
fi
failed=0
cases=$("$@" "$program") || { echo "not ok $gate $label: it does not run"; exit 1; }
for case in $cases; do
    if [ "$case" = tree-long ] && [ "${KDTR_TEST_SCALE:-full}" = small ]; then
        continue
    fi
    hash=$("$@" "$program" "$case" | sha256sum | cut -d ' ' -f 1)
    if grep -q "^$hash  $case\$" tests/data/golden.sha256; then
        echo "ok $gate $label: $case"
    else
        echo "not ok $gate $label: $case has hash $hash"
        failed=1
    fi
done
if [ "$(echo "$cases" | wc -l)" != "$(wc -l < tests/data/golden.sha256)" ]; then
    echo "not ok $gate $label: tests/data/golden.sha256 has other cases than the program"
    failed=1
fi
exit $failed
