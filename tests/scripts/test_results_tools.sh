#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is made of result files, from outside: the roofline program and the charts, on planted files,
# and what a release asks of the files.
#
#     test_results_tools.sh FOLDER_OF_PROGRAMS SCRATCH
set -u
roofline=$1/roofline
charts=$1/charts
plant=$1/plant_results
scratch=$2
gate=results
. tests/scripts/tool_checks.sh

bench=$scratch/results/2026-11-30-nvidia-h200-bench.json
peers=$scratch/results/2026-11-30-nvidia-h200-peers.json
hash=$(printf '%064d' 7)

# TEXT CODE PATTERN COMMAND...: ends with CODE and a matching line on either output.
ends() {
    text=$1
    wanted=$2
    pattern=$3
    shift 3
    run "$@"
    passed=0
    [ "$code" -eq "$wanted" ] && cat "$out" "$err" | grep -q -e "$pattern" && passed=1
    result $passed "$text"
}

# TEXT FILE PATTERN: a file that was written has a matching line.
holds() {
    passed=0
    grep -q -e "$3" "$2" && passed=1
    result $passed "$1"
}

# TEXT FILE PATTERN COUNT: so many lines match.
counts() {
    passed=0
    [ "$(grep -c -e "$3" "$2")" = "$4" ] && passed=1
    result $passed "$1"
}

try_roofline() {
    to=$scratch/projected/2026-11-30-sm120-projection
    ends "roofline: nothing to fit" 1 'no file <date>-nvidia-h200-bench.json' \
        sh bench/roofline.sh "$roofline" "$scratch/empty" "$scratch/projected"
    ends "roofline: a fit of planted rows" 0 'PROJECTION, us. Nothing below was measured' \
        sh bench/roofline.sh "$roofline" "$scratch/results" "$scratch/projected"
    holds "the projection says what it is" "$to.json" '"projection": 1'
    holds "it names what it was fitted on" "$to.json" '"fitted_on": {"gpu": "NVIDIA H200"'
    counts "both cards at the points" "$to.json" '"card": "RTX PRO 6000", "B": 4, "H": 8' 1
    holds "the text is kept too" "$to.txt" 'root of the mean square'
    ends "a projection is no result file" 2 'schema is not 1' \
        "$roofline" "$to.json" "$scratch/again.json"
    sed 's/NVIDIA H200/NVIDIA H100/' "$bench" > "$scratch/h100.json"
    ends "another card is refused" 2 'not of an H200' \
        "$roofline" "$scratch/h100.json" "$scratch/again.json"
    awk '/"kdtr_flash"/ && ++n > 9 { next } { print }' "$bench" > "$scratch/few.json"
    ends "too few rows are refused" 2 'do not determine the model' \
        "$roofline" "$scratch/few.json" "$scratch/again.json"
    ends "a folder that is not there" 1 'cannot write' \
        "$roofline" "$bench" "$scratch/nowhere/again.json"
    [ ! -e "$scratch/again.json" ]
    result $((1 - $?)) "what is refused writes nothing"
}

try_charts() {
    mkdir -p "$scratch/html" "$scratch/none"
    succeeds "charts of a full pair" "$charts" "$scratch/results" "$scratch/html"
    for name in points points_table sweep_n share_n sweep_q sweep_h sweep_budget served; do
        passed=1
        grep -q 'Not shown' "$scratch/html/$name.html" && passed=0
        [ -s "$scratch/html/$name.html" ] || passed=0
        result $passed "$name.html has its chart"
    done
    counts "a row of the table for each point" "$scratch/html/points_table.html" '<tr .*Even' 13
    holds "times and shares of the floor" "$scratch/html/points_table.html" \
        '(1,8,8,200000)</td><td>48.51 us</td><td>97.02 us, 50 %</td><td>388.1 us, 12 %</td>'
    holds "signs of HTML are text" "$scratch/html/points_table.html" \
        'commit c0ffee; planted &lt;1&gt; &amp; 2[.]'
    counts "no exponents" "$scratch/html/points_table.html" '[0-9]e[+-]' 0
    holds "a long time in full" "$scratch/html/points_table.html" '<td>17622 us, 12 %</td>'
    counts "six lines of served tokens" "$scratch/html/served.html" '<polyline' 6
    counts "default, exact, floor over N" "$scratch/html/sweep_n.html" '<polyline' 3
    rm "$peers"
    ends "no file of the peers" 0 'no points.html: no result file' \
        "$charts" "$scratch/results" "$scratch/html"
    holds "then its page has no chart" "$scratch/html/points.html" 'Not shown: there is no result'
    counts "and no invented one" "$scratch/html/points.html" '<svg' 0
    counts "but the others have" "$scratch/html/sweep_n.html" '<svg' 1
    sed '/"sweep_q"/d' "$bench" > "$bench.part" && mv "$bench.part" "$bench"
    ends "a set that is not there" 0 'no sweep_q.html: its rows are not there' \
        "$charts" "$scratch/results" "$scratch/html"
    echo '{' > "$bench"
    ends "a broken file" 2 'charts: .*bench.json:' "$charts" "$scratch/results" "$scratch/html"
    ends "no folder for them" 1 'cannot write' "$charts" "$scratch/none" "$scratch/nowhere"
}

# The rule by which a release asks for result files of its sources.
try_fresh() {
    ends "a release needs both files" 1 'nvidia-h200-bench.json is missing' \
        sh tests/scripts/fresh_results.sh "$scratch/empty" "$hash"
    succeeds "of its sources" sh tests/scripts/fresh_results.sh "$scratch/results" "$hash"
    ends "and of no others" 1 'bench.json is STALE' \
        sh tests/scripts/fresh_results.sh "$scratch/results" "$(printf '%064d' 8)"
    for commit in unknown 'c0ffee with changes'; do
        sed "s/\"commit\": \"[^\"]*\"/\"commit\": \"$commit\"/" "$bench" > "$scratch/kept.json"
        mv "$bench" "$scratch/bench.json" && mv "$scratch/kept.json" "$bench"
        ends "nor of what is not committed: $commit" 1 'bench.json was measured on sources that' \
            sh tests/scripts/fresh_results.sh "$scratch/results" "$hash"
        mv "$scratch/bench.json" "$bench"
    done
    "$plant" bench/limits.txt "$scratch/newer.json" "$peers" "$(printf '%064d' 8)"
    sed 's/2026-11-30/2026-12-01/' "$scratch/newer.json" \
        > "$scratch/results/2026-12-01-nvidia-h200-bench.json"
    ends "the newest counts" 1 '2026-12-01-nvidia-h200-bench.json is STALE' \
        sh tests/scripts/fresh_results.sh "$scratch/results" "$hash"
    rm "$scratch/results/2026-12-01-nvidia-h200-bench.json"
    ends "the peers' too" 1 'peers.json is STALE' \
        sh tests/scripts/fresh_results.sh "$scratch/results" "$hash"
}

mkdir -p "$scratch/results" "$scratch/empty"
succeeds "files are planted" "$plant" bench/limits.txt "$bench" "$peers" "$hash"
try_fresh
succeeds "files are planted again" "$plant" bench/limits.txt "$bench" "$peers" "$hash"
try_roofline
try_charts
exit $failed
