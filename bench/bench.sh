#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the CPU benchmarks and writes their result files: bench.sh PROGRAM...
# A file is out/bench/<date>-<cpu>-<what>.json for program bench_<what>; copy it to bench/results/
# to publish it.
set -eu
day=$(date -u +%Y-%m-%d)
cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
[ -n "$cpu" ] || cpu=$(uname -m)
name=$(echo "$cpu" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9-' | cut -c 1-40)
commit=$(git rev-parse HEAD 2> /dev/null || echo unknown)
mkdir -p out/bench
for program in "$@"; do
    what=${program##*/bench_}
    case $what in
    reference) method="wall clock around kdtr_run, median of 7 after one warm-up, one thread" ;;
    *) method="wall clock around a call, median of 201 after 20, one thread" ;;
    esac
    file=out/bench/$day-$name-$what.json
    "$program" "$file" "\"cpu\": \"$cpu\", \"compiler\": \"$(gcc --version | head -n 1)\",
    \"flags\": \"-O3 -ffp-contract=off\", \"threads\": 1, \"commit\": \"$commit\",
    \"sources_sha256\": \"$(sh tests/scripts/source_hash.sh)\", \"date\": \"$day\",
    \"method\": \"$method\""
    echo "wrote $file"
done
