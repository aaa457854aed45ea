#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs this kit on the GPU present. Needs the NVIDIA driver; no compiler, no ninja.
#
#   run.sh test              every gate, and every named case through the tool; gpu.log
#   run.sh bench [OPTIONS]   the benchmarks; with options `kdtr bench` alone, with these
#                            (`kdtr help bench` names them); bench.log
#   run.sh sanitize [TOOL...]  compute-sanitizer's memcheck, racecheck, initcheck and synccheck, or
#                            those named, over every gate at reduced sizes, KDTR_JOBS (1) at a
#                            time; sanitize-TOOL.log
#   run.sh profile           ncu: bytes that flash_main reads from DRAM at one point; profile.log
#
# Logs go to the folder named by KDTR_LOG_DIR, or beside this script; the last line is EXIT and a
# code. A program that fails does not keep the next from running; one that takes longer than
# KDTR_LIMIT_SECONDS (300) is ended. Exit code: 0, 1 for a failure or a finding, 2 where there is no
# GPU or no tool.
set -u
export LC_ALL=C
what=${1:-test}
[ $# -eq 0 ] || shift
kit=$(cd "$(dirname "$0")" && pwd)
logs=${KDTR_LOG_DIR:-$kit}
limit=${KDTR_LIMIT_SECONDS:-300}

# quit TEXT: nothing can be run.
quit() {
    echo "run.sh: $1" >&2
    exit 2
}

case $what in
test | bench | sanitize | profile) ;;
*) quit "usage: run.sh test | bench [OPTIONS] | sanitize [TOOL...] | profile" ;;
esac
if grep -q '^built SKIP' "$kit/kit.txt"; then
    quit "the kit has no programs: $(sed -n 's/^built SKIP //p' "$kit/kit.txt")"
fi
command -v nvidia-smi > /dev/null || quit "no CUDA device (no nvidia-smi: no NVIDIA driver)"
device=$(nvidia-smi --query-gpu=name --format=csv,noheader 2> /dev/null) ||
    quit "no CUDA device ($(nvidia-smi 2>&1 | sed -n 1p))"
device=$(echo "$device" | sed -n 1p)
[ -n "$device" ] || quit "no CUDA device (nvidia-smi finds none)"
mkdir -p "$logs" || exit 2
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

# tool_path NAME: where a program of the CUDA toolkit is.
tool_path() {
    command -v "$1" && return
    for path in /usr/local/cuda/bin/"$1" /opt/nvidia/nsight-compute/*/"$1"; do
        [ ! -x "$path" ] || { echo "$path" && return; }
    done
    return 1
}

header() {
    echo "PLACE gpu"
    echo "device $device"
    nvidia-smi --query-gpu=driver_version,clocks.max.sm,power.limit --format=csv,noheader |
        awk -F ', ' 'NR == 1 { print "driver " $1; print "clocks " $2; print "power " $3 }'
    cat "$kit/kit.txt"
    echo "date $(date -u +%Y-%m-%d)"
}

# logged LOG COMMAND...: header and COMMAND. LOG ends with EXIT and its code, which is returned.
logged() {
    log=$1
    shift
    {
        begun=$(date +%s)
        header
        "$@"
        code=$?
        echo "SECONDS $(($(date +%s) - begun)) run.sh $what"
        echo "EXIT $code"
    } 2>&1 | tee "$log"
    code=$(sed -n 's/^EXIT //p' "$log" | tail -n 1)
    return "${code:-1}"
}

# timed NAME COMMAND...: ends it after $limit seconds, sets $took, returns its code. Says what a
# program cannot say itself: that it hung or crashed.
timed() {
    name=$1
    shift
    begin=$(date +%s)
    timeout -k 10 "$limit" "$@"
    code=$?
    took=$(($(date +%s) - begin))
    if [ $code -ge 124 ] && [ "$took" -ge "$limit" ]; then
        echo "not ok $name: not done after $limit seconds"
    elif [ $code -gt 2 ]; then
        echo "not ok $name: exit code $code"
    fi
    echo "SECONDS $took $name"
    return $code
}

# gate_of PROGRAM: "P1-1 gate_p1_1_mma".
gate_of() {
    basename "$1" | sed 's/^gate_p\([0-9]*\)_\([0-9]*\).*/P\1-\2 &/'
}

# Every named case through the tool: the naive kernel against the bits in the bundle.
tool_cases() {
    wrong=0
    "$kit/kdtr" gen --list > "$scratch/cases" && [ -s "$scratch/cases" ] || {
        echo "not ok P0-5 kdtr verify: no named cases"
        return 1
    }
    for case in $(awk '{ print $1 }' "$scratch/cases"); do
        if "$kit/kdtr" gen "$case" -o "$scratch/case.kdtr" && timeout -k 10 "$limit" \
            "$kit/kdtr" verify "$scratch/case.kdtr" --backend naive > "$scratch/out" 2>&1; then
            echo "ok P0-5 kdtr verify --backend naive: $case"
        else
            cat "$scratch/out"
            echo "not ok P0-5 kdtr verify --backend naive: $case"
            wrong=1
        fi
    done
    return $wrong
}

run_tests() {
    failed=0
    for program in "$kit"/gate_*; do
        # A CUDA context does not survive a fork.
        timed "$(gate_of "$program")" env CK_FORK=no CK_VERBOSITY=verbose "$program" || failed=1
    done
    begin=$(date +%s)
    tool_cases || failed=1
    echo "SECONDS $(($(date +%s) - begin)) P0-5 kdtr verify"
    return $failed
}

# bench_program FILE NAME COMMAND...: one that does not end leaves no result file.
bench_program() {
    file=$1
    name=$2
    shift 2
    timed "$name" "$@"
    code=$?
    [ $code -le 1 ] || rm -f "$file"
    return $code
}

run_bench() {
    failed=0
    if [ $# -eq 0 ]; then
        bench_program "$logs/bench.json" bench_naive "$kit/bench_naive" "$logs/bench.json" \
            "$kit/kit.txt" || failed=1
    fi
    bench_program "$logs/bench-gpu.json" "kdtr bench" "$kit/kdtr" bench --wide \
        --json "$logs/bench-gpu.json" "$@" || failed=1
    return $failed
}

# sanitize_gate TOOL PROGRAM [CASE]: what the tool says of a gate, or a Check case of it, then a
# line "sanitizer"; "not ok" if it has findings, does not pass or does not end.
sanitize_gate() {
    tool=$1
    program=$2
    gate=$(basename "$program")${3:+ ($3)}
    # racecheck does not follow lane 0 through a __syncwarp: every lane arrives for itself.
    if [ "$tool" = racecheck ] && [ -x "$kit/every-lane/$(basename "$program")" ]; then
        program=$kit/every-lane/$(basename "$program")
    fi
    out=$(mktemp "$scratch/out.XXXXXX")
    timed "$tool $gate" env CK_FORK=no KDTR_TEST_SCALE=small ${3:+CK_RUN_CASE="$3"} \
        "$sanitizer" --tool "$tool" --error-exitcode 99 "$program" > "$out" 2>&1
    code=$?
    cat "$out"
    checks=$(sed -n '/^[0-9]*%: Checks: /p' "$out" | tail -n 1)
    summary=$(sed -n 's/^========= \(.*SUMMARY: .*\)/\1/p' "$out" | tail -n 1)
    # The tool must say itself that it found nothing, and the gate that it made checks.
    case "$code:$checks:$summary" in
    "0:100%: Checks: "[1-9]*":ERROR SUMMARY: 0 errors"*) ;;
    "0:100%: Checks: "[1-9]*":RACECHECK SUMMARY: 0 hazards"*) ;;
    *) echo "not ok $tool $gate" ;;
    esac
    echo "sanitizer $tool $gate: ${checks:-no result}; ${summary:-no summary}; exit code $code"
}

# sanitize_parts PROGRAM: what of a gate is run at a time. With several jobs its Check cases, which
# it names itself if it comes to its end, else all of it: an empty line.
sanitize_parts() {
    if [ "${KDTR_JOBS:-1}" -gt 1 ] && CK_FORK=no CK_VERBOSITY=verbose KDTR_TEST_SCALE=small \
        timeout -k 10 "$limit" "$1" > "$scratch/named" 2>&1; then
        sed -n 's/^[^: ]*:[0-9]*:[PFE]:\([^:]*\):.*/\1/p' "$scratch/named" | sort -u
    else
        echo
    fi
}

# sanitize TOOL: every gate, KDTR_JOBS parts of gates at a time; then how many parts have findings.
sanitize() {
    tool=$1
    echo "sizes KDTR_TEST_SCALE=small KDTR_TEST_WORK=${KDTR_TEST_WORK:-} seed ${KDTR_TEST_SEED:-1}"
    "$sanitizer" --version | sed -n '$s/^/compute-sanitizer: /p'
    for program in "$kit"/gate_*; do
        sanitize_parts "$program" > "$scratch/parts"
        [ -s "$scratch/parts" ] || echo > "$scratch/parts"
        while read -r part; do
            printf '%s\t%s\n' "$program" "$part"
        done < "$scratch/parts"
    done > "$scratch/jobs"
    number=0
    while IFS="$(printf '\t')" read -r program part; do
        number=$((number + 1))
        sanitize_gate "$tool" "$program" "$part" > "$scratch/$(printf '%04d' $number).log" 2>&1 &
        [ $((number % ${KDTR_JOBS:-1})) -ne 0 ] || wait
    done < "$scratch/jobs"
    wait
    cat "$scratch"/[0-9]*.log
    findings=$(grep -l "^not ok $tool " "$scratch"/[0-9]*.log | wc -l)
    rm -f "$scratch"/[0-9]*.log
    echo "findings $findings"
    [ "$findings" -eq 0 ]
}

run_sanitize() {
    failed=0
    [ $# -gt 0 ] || set -- memcheck racecheck initcheck synccheck
    for tool in "$@"; do
        logged "$logs/sanitize-$tool.log" sanitize "$tool" || failed=1
    done
    return $failed
}

# DRAM bytes of the first launch of flash_main at one row tile, against the cache's rows of 1,152
# bytes (phases/phase1.md). ncu empties the L2 before it.
profile() {
    timed ncu "$ncu" --metrics dram__bytes_read.sum --kernel-name flash_main --launch-count 1 \
        --cache-control all --clock-control none --print-units base --csv "$kit/kdtr" bench \
        --point 1,8,8,200000 --layout random --implementation flash --samples 1 --no-ceilings \
        > "$scratch/out" 2>&1
    code=$?
    cat "$scratch/out"
    if grep -q ERR_NVGPUCTRPERM "$scratch/out"; then
        echo "not ok DRAM bytes: the driver lets only root read the counters"
        return 1
    fi
    [ $code -eq 0 ] || { echo "not ok DRAM bytes: exit code $code" && return 1; }
    awk -F '","' '/^".*"dram__bytes_read\.sum"/ { bytes = $NF; gsub(/[",]/, "", bytes) }
        END {
            bytes += 0
            cache = 200008 * 1152
            fits = bytes > 0 && bytes <= 1.1 * cache
            printf "%s DRAM bytes: flash_main read %.0f, cache %.0f, ratio %.4f, limit 1.1\n",
                fits ? "ok" : "not ok", bytes, cache, bytes / cache
            exit !fits
        }' "$scratch/out"
}

case $what in
test) logged "$logs/gpu.log" run_tests ;;
bench) logged "$logs/bench.log" run_bench "$@" ;;
sanitize)
    sanitizer=$(tool_path compute-sanitizer) ||
        quit "no compute-sanitizer in PATH or /usr/local/cuda/bin (it comes with the CUDA toolkit)"
    run_sanitize "$@"
    ;;
profile)
    ncu=$(tool_path ncu) ||
        quit "no ncu in PATH, /usr/local/cuda/bin or /opt/nvidia (it comes with Nsight Compute)"
    logged "$logs/profile.log" profile
    ;;
esac
