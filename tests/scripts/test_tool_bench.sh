#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `kdtr bench` and `kdtr report` from outside, from the repository root, on the emulator:
#
#   test_tool_bench.sh KDTR FOLDER WRONG_PLAN SCRATCH
#
# FOLDER holds a libkdtr_bench.so.0 and a libkdtr_cuda.so.0 whose device is the emulator; WRONG_PLAN
# is a library to load before, which spoils the outputs of exact mode. SCRATCH is emptied first. The
# points are tiny; times mean nothing.
set -u
export LC_ALL=C
if [ $# -ne 4 ]; then
    echo "usage: test_tool_bench.sh KDTR FOLDER WRONG_PLAN SCRATCH" >&2
    exit 2
fi
root=$(pwd)
kdtr=$root/$1
emulator=$root/$2
wrong_plan=$root/$3
scratch=$4
# shellcheck disable=SC2034 # for tool_checks.sh
gate=bench
. tests/scripts/tool_checks.sh
scratch=$root/$scratch
out=$scratch/stdout
err=$scratch/stderr
date=$(date -u +%Y-%m-%d)
results=$scratch/results
mkdir -p "$results"
cd "$results" || exit 2

# The tool with the emulator's libraries.
emulated=$scratch/emulated
printf '#!/bin/sh\nexec env LD_LIBRARY_PATH="%s" "%s" "$@"\n' "$emulator" "$kdtr" > "$emulated"
chmod +x "$emulated"

# TEXT: the condition before it held.
holds() {
    passed=$((1 - $?))
    result $((passed > 0)) "$1"
}

# Only the named files are in the folder of results.
only() {
    [ "$(find . -type f | sed 's|^\./||' | sort | tr '\n' ' ')" = "${1:+$1 }" ]
}

# Whether a result file is whole, of balanced brackets, with a row a line.
whole() {
    head -n 1 "$1" | grep -q '^{"schema": 1,' || return 1
    awk '{
            gsub(/\\./, "")
            gsub(/"[^"]*"/, "")
            n += gsub(/[{\[]/, "") - gsub(/[}\]]/, "")
            if (n <= 0 && NR > 1 && !ended) { ended = NR }
        }
        END { exit !(n == 0 && ended == NR) }' "$1"
}

succeeds "help of bench" "$kdtr" bench --help
shows "help of bench: exit codes" '^  1  a row failed'
succeeds "help of report" "$kdtr" help report

# Without the library, with one that does not load, without a device.
mkdir "$scratch/alone" "$scratch/broken"
cp "$kdtr" "$(dirname "$kdtr")/libkdtr.so.0" "$scratch/alone/"
refuses "bench without its library" 'bench: libkdtr_bench.so.0 is not there; .*nvcc' \
    "$scratch/alone/kdtr" bench
refuses "report without the CUDA library" 'report: no CUDA library' \
    "$scratch/alone/kdtr" report
echo "no library" > "$scratch/broken/libkdtr_bench.so.0"
refuses "bench with a library that does not load" 'bench: .*libkdtr_bench.so.0: file too short' \
    env LD_LIBRARY_PATH="$scratch/broken" "$kdtr" bench
refuses "bench without a device" 'bench: .*no CUDA' env SIMT_NO_DEVICE=1 "$emulated" bench
refuses "report without a device" 'report: .*no CUDA.*NO_DEVICE' \
    env SIMT_NO_DEVICE=1 "$emulated" report
only ""
holds "nothing is written then"

refuses "bench with an unknown option" "there is no option '--fast'" "$emulated" bench --fast
refuses "bench with a bad value" "--set takes table, .*, not 'all'" "$emulated" bench --set all
refuses "report with an unknown option" "report does not take '--fast'" "$emulated" report --fast
refuses "report without a file name" "-o needs a file name" "$emulated" report -o

# Files that cannot be written are refused before anything is measured.
refuses "bench into a folder that is not there" 'none/file: No such file' \
    "$emulated" bench --set long --json "$scratch/none/file"
refuses "bench into a folder" 'results: Is a directory' "$emulated" bench --json "$results"
refuses "report into a folder that is not there" 'none/file: No such file' \
    "$emulated" report -o "$scratch/none/file"

# A run of everything.
succeeds "bench" "$emulated" bench --quick
only "$date-kdtr-simt-emulator-bench-quick.json"
holds "bench: the usual name of the file, and nothing else"
file=$results/$date-kdtr-simt-emulator-bench-quick.json
whole "$file"
holds "bench: the file is whole"
shows "bench: facts about the build" '^sources_sha256  *[0-9a-f]\{64\}$'
shows "bench: how long it took" '^171 rows, 0 failed, [0-9.]* s$'
passed=1
for set in table:49 long:3 sweep_n:39 sweep_q:31 sweep_h:28 sweep_budget:21; do
    name=${set%:*}
    count=$(grep -c "^    {\"op\": \"verify\", .*\"set\": \"$name\", " "$file")
    [ "$count" -eq "${set#*:}" ] && [ "$(grep -c "^$name: " "$out")" -eq 1 ] || passed=0
done
result $passed "bench: the rows of each set, under a heading each"
grep -q '"commit": "[0-9a-f]*[^"]*", "sources_sha256": "[0-9a-f]\{64\}", "built": ' "$file"
holds "bench: commit and hash of the sources are in the file"
! grep -q '"gather": \[{"rows": [0-9]*, "random_gbps": 0.0' "$file" &&
    grep -q '"gather": \[{"rows": ' "$file"
holds "bench: ceilings are in the file"

# A row that fails: exact mode is wrong.
echo kept > "$scratch/kept.json"
differs "bench with wrong outputs" 'flash_exact .* FAILED: the output differs from the truth' \
    env LD_PRELOAD="$wrong_plan" "$emulated" bench --set long --quick --json "$scratch/kept.json"
shows "bench with wrong outputs: the count" '^3 rows, 1 failed, '
[ "$(grep -c '"kdtr_flash"' "$scratch/kept.json")" -eq 2 ] &&
    ! grep -q '"kdtr_flash_exact"' "$scratch/kept.json" &&
    grep -q '"rows_failed": 1}' "$scratch/kept.json" && whole "$scratch/kept.json"
holds "bench with wrong outputs: the row is not in the file, the others are"

# An interrupt, once the table has begun: what is there stays, nothing is added.
echo kept > "$scratch/kept.json"
touch "$scratch/progress"
# The shell would start a background command with interrupts ignored: env gives them back.
env --default-signal=INT LD_LIBRARY_PATH="$emulator" "$kdtr" bench --samples 1000 \
    --json "$scratch/kept.json" > "$scratch/progress" 2> "$err" < /dev/null &
child=$!
waited=0
while ! grep -q '^table: ' "$scratch/progress" && [ $waited -lt 60 ]; do
    sleep 1
    waited=$((waited + 1))
done
kill -INT $child
wait $child
code=$?
cp "$scratch/progress" "$out"
[ $code -eq 130 ] && [ "$(cat "$scratch/kept.json")" = kept ] &&
    ! ls "$scratch"/kept.json.* > /dev/null 2>&1
holds "bench that is interrupted leaves the file that is there, and no other"

# The progress bar: on a terminal or where it is asked for, never else (succeeds, above).
run "$emulated" bench --point 1,1,1,3 --quick --no-ceilings --progress
[ $code -eq 0 ] && grep -q '\[#*\.*\] 2 of 3 rows, 0:0[0-9] elapsed, about 0:0[0-9] left' "$err"
holds "bench --progress"

# The report.
mv "$file" "$scratch/"
succeeds "report" "$emulated" report --quick
report=$date-kdtr-simt-emulator-report.json
only "$report"
holds "report: the usual name of the file, and nothing else"
whole "$report"
holds "report: the file is whole"
ok='{"arguments": "selftest\( --exact\)\{0,1\}", "exit": 0, "lines": \['
[ "$(grep -c "$ok" "$report")" -eq 2 ] &&
    [ "$(grep -c '"kdtr SIMT emulator: passed"' "$report")" -eq 2 ] &&
    grep -q '^{"schema": 1, "kind": "kdtr-report", "date": "'"$date"'", "gpu": "kdtr SIMT' "$report"
holds "report: both selftests with exit code and lines"
[ "$(grep -c '^    {"op": "verify", ' "$report")" -eq 171 ] &&
    grep -q '^  "bench": {"schema": 1,$' "$report"
holds "report: the result of bench"
grep -q '"build": {"commit": "[^"]' "$report"
holds "report: facts about the build"

# Something fails: the report says so, and is written all the same. First a selftest alone.
run env WRONG_PLAN_F32=1 LD_PRELOAD="$wrong_plan" "$emulated" report --quick -o selftest.json
[ $code -eq 1 ] && [ ! -s "$err" ] && whole selftest.json &&
    grep -q '{"arguments": "selftest", "exit": 0, ' selftest.json &&
    grep -q '{"arguments": "selftest --exact", "exit": 1, ' selftest.json &&
    grep -q '"kdtr SIMT emulator: FAILED"' selftest.json &&
    grep -q '{"arguments": "bench --quick", "exit": 0, ' selftest.json &&
    grep -q '"rows_failed": 0' selftest.json
holds "report: a selftest that fails"
shows "report: what failed" \
    '^selftest passed, selftest --exact FAILED, bench passed: selftest.json is written$'
# Then the bench: the loader names the library that it cannot load, in a folder with a blank.
mkdir "$scratch/a folder"
cp "$emulator/libkdtr_cuda.so.0" "$scratch/a folder/"
echo "no library" > "$scratch/a folder/libkdtr_bench.so.0"
run env LD_LIBRARY_PATH="$scratch/a folder" HOME="$scratch/a folder" "$kdtr" report -o failed.json
[ $code -eq 1 ] && whole failed.json &&
    grep -q '"bench_output": {"arguments": "bench", "exit": 2, ' failed.json &&
    grep -q '"kdtr: bench: (path): file too short"' failed.json &&
    grep -q '"bench": null}' failed.json
holds "report: a bench that fails, without the path that it names"
shows "report: that it failed" '^selftest passed, .* passed, bench FAILED: failed.json is written$'
passed=1
for word in "$(uname -n)" "$(id -un)" "$root" "${HOME:-/root}" "$scratch" "a folder"; do
    # A word that the tool says anyway, such as the root of a tree, is nothing of the machine's.
    grep -q -w -F -e "$word" "$kdtr" "$emulator"/*.so.0 && continue
    ! grep -q -w -F -e "$word" ./*.json || passed=0
done
! grep -q '[ "]/[a-z]' ./*.json || passed=0
result $passed "report: no name of the machine or the user, no path"
only "$report failed.json selftest.json"
holds "report: nothing else is left in the folder"
exit $failed
