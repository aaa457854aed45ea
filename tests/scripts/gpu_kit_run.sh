#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the gates or the benchmarks of this kit on the GPU present: run.sh test|bench [OPTIONS]
# With options only bench_gpu runs, with these (bench_gpu --help names them).
# Needs the NVIDIA driver; no compiler, no ninja. The log goes to gpu.log (bench.log) in the folder
# named by KDTR_LOG_DIR, or beside this script. Fails where there is no GPU.
set -u
what=${1:-test}
[ $# -eq 0 ] || shift
kit=$(cd "$(dirname "$0")" && pwd)
logs=${KDTR_LOG_DIR:-$kit}

if grep -q '^built SKIP' "$kit/kit.txt"; then
    echo "run.sh: the kit has no programs: $(sed -n 's/^built SKIP //p' "$kit/kit.txt")" >&2
    exit 2
fi
device=$(nvidia-smi --query-gpu=name --format=csv,noheader 2> /dev/null | head -n 1)
if [ -z "$device" ]; then
    echo "run.sh: no CUDA device (nvidia-smi finds none)" >&2
    exit 2
fi

header() {
    echo "PLACE gpu"
    echo "device $device"
    nvidia-smi --query-gpu=driver_version,clocks.max.sm,power.limit --format=csv,noheader |
        head -n 1 | awk -F ', ' '{ print "driver " $1; print "clocks " $2; print "power " $3 }'
    cat "$kit/kit.txt"
    echo "date $(date -u +%Y-%m-%d)"
}

# Every named case through the tool: the naive kernel against the bits in the bundle.
tool_cases() {
    scratch=$(mktemp -d)
    for case in $("$kit/kdtr" gen --list | awk '{ print $1 }'); do
        if "$kit/kdtr" gen "$case" -o "$scratch/case.kdtr" &&
            "$kit/kdtr" verify "$scratch/case.kdtr" --backend naive > "$scratch/out"; then
            echo "ok P0-5 kdtr verify --backend naive: $case"
        else
            cat "$scratch/out"
            echo "not ok P0-5 kdtr verify --backend naive: $case"
        fi
    done
    rm -rf "$scratch"
}

run_tests() {
    failed=0
    for program in "$kit"/gate_*; do
        start=$(date +%s)
        # A CUDA context does not survive a fork.
        CK_FORK=no CK_VERBOSITY=verbose "$program" || failed=1
        echo "SECONDS $(($(date +%s) - start)) $(basename "$program")"
    done
    tool_cases
    return $failed
}

run_bench() {
    failed=0
    if [ $# -eq 0 ]; then
        "$kit/bench_naive" "$logs/bench.json" "$kit/kit.txt" || failed=1
    fi
    "$kit/bench_gpu" --json "$logs/bench-gpu.json" --kit "$kit/kit.txt" \
        --limits "$kit/limits.txt" "$@" || failed=1
    return $failed
}

case $what in
test) log=$logs/gpu.log ;;
bench) log=$logs/bench.log ;;
*)
    echo "usage: run.sh test|bench [OPTIONS]" >&2
    exit 2
    ;;
esac
{
    header
    if [ "$what" = test ]; then
        run_tests
    else
        run_bench "$@"
    fi
    echo "EXIT $?"
} 2>&1 | tee "$log"
grep -q '^EXIT 0$' "$log" && ! grep -q '^not ok ' "$log"
