#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Judges the logs of the suites that the list files name: summary.sh GATES
# GATES is a pattern of gate IDs ("all" for every test). Prints failing logs whole, then for each
# gate where it ran, what did not run and why, and what is not built; closes with
# "N passed, N failed, N skipped". Exit code 1 on a failure or on a built gate of which there is no
# result at all; one that this machine has no tool for is listed as NOT RUN, with the reason.
set -u
gates=$1
results=out/test/results.tsv
logs=$(sed -n 's/^build \(out\/test\/[^:]*\.log\): suite.*/\1/p' tests/targets.ninja \
    tests/simt_targets.ninja tests/flash_targets.ninja bench/bench.ninja \
    bench/results_targets.ninja)
for log in $logs; do
    # A suite that left no log must not vanish from the count.
    [ -s "$log" ] || { mkdir -p out/test && echo "EXIT no log" > "$log"; }
done
sh tests/scripts/source_hash.sh > out/test/sources.sha256
# Evidence changes without any source: this gate is judged here, each time.
{
    echo "PLACE cpu"
    sh tests/scripts/gate_p1_5.sh phases/evidence/gpu.txt "$(cat out/test/sources.sha256)" \
        tests/gpu_kit.ninja
    echo "EXIT $?"
} > out/test/gate_p1_5.log
logs="$logs out/test/gate_p1_5.log"
# shellcheck disable=SC2086 # names without blanks
awk -f tests/scripts/results.awk $logs > "$results" || exit 1

for log in $(awk -F '\t' '$1 == "fail" { print $4 }' "$results" | sort -u); do
    echo "==== $log"
    cat "$log"
done

awk -F '\t' -v gates="$gates" -f tests/scripts/summary.awk \
    out/test/sources.sha256 phases/phase[0-9].md $(ls phases/evidence/*.txt 2> /dev/null) "$results"
