#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the fuzzer of the bundle reader.
#
#   fuzz.sh short PROGRAM    about ten seconds, from the committed corpus; nothing is kept
#   fuzz.sh long PROGRAM     KDTR_FUZZ_RUNS executions (10,000,000) by KDTR_FUZZ_JOBS jobs (2), in
#                            out/fuzz/: fuzz.log, the corpus that grew, and a file a finding
#
# A PROGRAM that starts with SKIP says why it could not be built. KDTR_FUZZ_SEED seeds it.
set -u
mode=$1
program=$2
if [ "$(head -c 4 "$program")" = SKIP ]; then
    echo "skip P0-2 fuzz: $(sed 's/^SKIP //' "$program")"
    [ "$mode" = short ] && exit 0
    exit 2
fi
runs=${KDTR_FUZZ_RUNS:-10000000}
jobs=${KDTR_FUZZ_JOBS:-2}
seed=${KDTR_FUZZ_SEED:-1}
export ASAN_OPTIONS=quarantine_size_mb=8
# One mutation at a time: the mutator breaks enough with one.
options="-mutate_depth=1 -max_len=6144 -timeout=25 -print_final_stats=1 -verbosity=0"

# Executions, and how far they came, of the logs named.
count() {
    awk '/^stat::number_of_executed_units:/ { executed += $2 }
        /^REACH / { bundles += $5; problems += $7; run += $9; steps += $11 }
        END { printf "%d %d %d %d %d\n", executed, bundles, problems, run, steps }' "$@"
}

short() {
    work=$(mktemp -d) || exit 2
    trap 'rm -rf "$work"' EXIT
    mkdir "$work/corpus"
    # shellcheck disable=SC2086 # options are meant to split
    "$program" $options -seed="$seed" -max_total_time=10 -artifact_prefix="$work/" \
        "$work/corpus" tests/fuzz/corpus > "$work/log" 2>&1
    code=$?
    set -- $(count "$work/log")
    if [ "$code" -ne 0 ] || [ "$4" -eq 0 ] || [ "$5" -eq 0 ]; then
        cat "$work/log"
        for file in "$work"/crash-* "$work"/timeout-* "$work"/leak-* "$work"/oom-*; do
            [ ! -f "$file" ] || od -A x -t x1 "$file"
        done
        echo "not ok P0-2 fuzz: exit code $code after $1 executions"
        return 1
    fi
    echo "ok P0-2 fuzz: $1 executions, $2 bundles, $3 with a problem, $4 run, $5 drafts"
}

long() {
    work=out/fuzz
    mkdir -p "$work/corpus"
    rm -f "$work"/job-*.log
    # What is fuzzed is what the tree is now, not when the run ends.
    commit=$(git rev-parse HEAD 2> /dev/null || echo unknown)
    [ -z "$(git status --porcelain 2> /dev/null)" ] || commit="$commit with changes"
    sources=$(sh tests/scripts/source_hash.sh)
    start=$(date +%s)
    job=0
    while [ "$job" -lt "$jobs" ]; do
        # shellcheck disable=SC2086
        "$program" $options -seed=$((seed + job)) -runs=$(((runs + jobs - 1) / jobs)) \
            -artifact_prefix="$work/" "$work/corpus" tests/fuzz/corpus \
            > "$work/job-$job.log" 2>&1 &
        job=$((job + 1))
    done
    wait
    seconds=$(($(date +%s) - start))
    [ "$seconds" -gt 0 ] || seconds=1
    findings=$(grep -c -e '^SUMMARY: ' "$work"/job-*.log | awk -F : '{ n += $2 } END { print n }')
    set -- $(count "$work"/job-*.log)
    {
        echo "commit $commit"
        echo "sources_sha256 $sources"
        echo "date $(date -u +%Y-%m-%d)"
        echo "seed $seed, jobs $jobs, seconds $seconds, executions a second $(($1 / seconds))"
        echo "executions $1: bundles $2, with a problem $3, run $4, drafts $5"
        echo "findings $findings"
        sed -n 's/^SUMMARY: /finding: /p' "$work"/job-*.log
    } > "$work/fuzz.log"
    cat "$work/fuzz.log"
    [ "$findings" -eq 0 ] && [ "$1" -ge "$runs" ]
}

case $mode in
short) short ;;
long) long ;;
*)
    echo "usage: fuzz.sh short|long PROGRAM" >&2
    exit 2
    ;;
esac
