#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `kdtr bench` as one program, at tiny points on the emulator: test_bench_gpu.sh PROGRAM
# Shows that it runs, checks what it times, and writes its files; its times mean nothing.
set -u
export LC_ALL=C
program=$1
failed=0
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

# report CONDITION TEXT: CONDITION is 0 for success.
report() {
    if [ "$1" -eq 0 ]; then
        echo "ok bench_gpu: $2"
    else
        echo "not ok bench_gpu: $2"
        sed 's/^/    /' "$work/out"
        failed=1
    fi
}

# runs CODE ARGUMENTS...: whether the program ends with CODE.
runs() {
    code=$1
    shift
    "$program" "$@" > "$work/out" 2>&1
    [ $? -eq "$code" ]
}

# rows_with TEXT: how many rows of the result file have it.
rows_with() {
    grep '"op": "verify"' "$work/json" | grep -c -F -- "$1"
}

printf 'commit 0123\nsources_sha256 4567\n' > "$work/kit"
printf '# comment\n\n2 3 5 40 0.001 0.0005\n' > "$work/low"
printf '2 3 5 40 9e8 9e7 # generous\n' > "$work/high"
printf '2 3 5 40\n' > "$work/malformed"

runs 0 --point 2,3,5,40 --implementation naive --quick --kit "$work/kit" --json "$work/json"
report $? "a point, naive"
[ "$(rows_with '"kdtr_naive", "mask": "tree", "B": 2, "H": 3, "Q": 5, "N": 40')" -eq 2 ] &&
    [ "$(rows_with '"layout": "random"')" -eq 1 ] && [ "$(rows_with '"samples": 5')" -eq 2 ]
report $? "both layouts are in the result file"
grep -q '"commit": "0123", "sources_sha256": "4567"' "$work/json" &&
    grep -q '"ceilings": {"event_us"' "$work/json"
report $? "the result file says what was measured where"
runs 0 --point 1,2,33,7 --mask parents --row-bytes 1168 --layout contiguous \
    --implementation naive --samples 1 --no-ceilings --seed 7 --json "$work/json" &&
    [ "$(rows_with '"row_stride_bytes": 1168')" -eq 1 ] &&
    [ "$(rows_with '"mask": "tree_parents"')" -eq 1 ]
report $? "parents, padded rows, one layout"
runs 0 --point 1,1,1,0 --implementation naive --samples 1 --no-ceilings
report $? "an empty prefix"
grep -q '"set": "point"' "$work/json" &&
    grep -q '"seconds": [0-9.]*, "rows_failed": 0}' "$work/json"
report $? "the result file says how long it took, and which set a row is of"
runs 0 --point 2,3,5,40 --implementation auto --samples 1 --limits "$work/low" &&
    [ "$(grep -c ' 0.001! ' "$work/out")" -eq 1 ]
report $? "a median above its limit is marked"
runs 0 --point 2,3,5,40 --implementation auto --samples 1 --limits "$work/high" &&
    ! grep -q '9e+08!' "$work/out" && grep -q '9e+08 ' "$work/out"
report $? "a median below its limit is not"
runs 1 --point 2,3,5,40 --implementation flash --row-bytes 1156 --layout random --samples 1 \
    --no-ceilings --json "$work/json" && grep -q 'FAILED: ' "$work/out" &&
    [ -s "$work/json" ] && [ "$(rows_with verify)" -eq 0 ] &&
    grep -q '"rows_failed": 1}' "$work/json"
report $? "a row that fails is reported"
runs 0 --point 16,8,8,120 --implementation flash --layout random --samples 1 --no-ceilings \
    --wide --json "$work/json" && grep -q ' 16 *4 *1 *64 *1$' "$work/out" &&
    [ "$(rows_with '"row_tiles": 16, "parts": 4, "chunks": 1, ')" -eq 1 ]
report $? "the schedule is that of a plan that expects the batch"
grep -q 'quartiles of 1 samples, ' "$work/json" && grep -q 'quartiles of 1 samples, ' "$work/out"
report $? "the method names the samples of the run"
runs 0 --set sweep_budget --implementation flash --layout random --samples 1 --no-ceilings \
    --json "$work/json" && [ "$(rows_with '"set": "sweep_budget"')" -eq 7 ] &&
    [ "$(rows_with '"Q": 11, ')" -eq 1 ] && [ "$(rows_with '"budget": 10, ')" -eq 1 ] &&
    grep -q '^sweep_budget: ' "$work/out" && ! grep -q '^sweep_q: ' "$work/out"
report $? "one set, of draft trees"
runs 2 --limits "$work/malformed" && grep -q "malformed: this is not a file of limits" \
    "$work/out" && runs 2 --limits "$work/none" && grep -q "cannot be read" "$work/out"
report $? "limits that cannot be read are refused"
for line in "0 3 5 40 60 50" "4294967297 3 5 40 60 50" "2 3 5 -1 60 50"; do
    echo "$line" > "$work/odd"
    runs 2 --point 2,3,5,40 --limits "$work/odd" && grep -q "not a file of limits" "$work/out"
    report $? "limits of $line are refused"
done
runs 2 --implementation naive --set long --json "$work/none" &&
    grep -q '^kdtr: bench: --set: no row of these sets' "$work/out" && [ ! -e "$work/none" ]
report $? "a run without a row is refused"
runs 2 --kit "$work/none" && grep -q "none: the facts about the build cannot be read" "$work/out"
report $? "facts that cannot be read are refused"
echo kept > "$work/kept"
runs 2 --point 1,1,1,0 --limits "$work/malformed" --json "$work/kept" &&
    [ "$(cat "$work/kept")" = kept ]
report $? "a run that does not come to its end leaves the file that is there"
for options in "--point 1,2,3" "--point 0,8,1,5" "--point 4294967297,1,1,1" \
    "--point 1,1,1,9223372036854775807" "--layout other" "--samples 0" "--samples -1" \
    "--samples 5x" "--row-bytes 1000" "--row-bytes 1154" "--implementation fast" \
    "--implementation reference" "--set other" "--set point" "--seed -1"; do
    # shellcheck disable=SC2086 # an option and its value
    runs 2 $options && [ "$(wc -l < "$work/out")" -eq 1 ] &&
        grep -q "^kdtr: bench: ${options%% *} takes .*, not '${options#* }'; try " "$work/out"
    report $? "$options is refused"
done
runs 2 --mask && grep -q '^kdtr: bench: --mask takes packed or parents; ' "$work/out"
report $? "an option without its value is refused"
runs 2 --unknown 1 && grep -q "^kdtr: bench: there is no option '--unknown'; " "$work/out"
report $? "an unknown option is refused"
runs 2 --point 1,1,1,1 --set long && grep -q 'exclude each other' "$work/out"
report $? "a point and a set exclude each other"
exit $failed
