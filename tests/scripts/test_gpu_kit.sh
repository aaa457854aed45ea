#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The kit's run.sh without a GPU: test_gpu_kit.sh RUN_SH
# Programs of a kit, nvidia-smi and the tools of the CUDA toolkit are scripts here: shows what
# run.sh makes of their exit codes and output, and nothing of a GPU.
set -u
export LC_ALL=C
run=$1
failed=0
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
kit=$work/kit
mkdir -p "$kit" "$work/driver" "$work/tools" "$work/logs"

# program PATH: an executable script from standard input.
program() {
    { echo "#!/bin/sh" && cat; } > "$1"
    chmod +x "$1"
}

# report TEXT: the line of a check, which is what came before.
report() {
    if [ $? -eq 0 ]; then
        echo "ok gpu kit: $1"
    else
        echo "not ok gpu kit: $1"
        sed 's/^/    /' "$work/out"
        failed=1
    fi
}

# ends CODE PATHS ARGUMENTS...: whether run.sh ends with CODE, with PATHS before PATH.
ends() {
    code=$1
    paths=$2
    shift 2
    env PATH="$paths:$PATH" KDTR_LOG_DIR="$work/logs" KDTR_LIMIT_SECONDS=2 \
        sh "$kit/run.sh" "$@" > "$work/out" 2>&1
    [ $? -eq "$code" ]
}

# last LOG LINE: whether a log ends with a line.
last() {
    [ "$(tail -n 1 "$work/logs/$1")" = "$2" ]
}

cp "$run" "$kit/run.sh"
printf 'commit 0123\nsources_sha256 4567\nbuilt with nothing\n' > "$kit/kit.txt"
program "$kit/gate_p0_5" << 'END'
echo "100%: Checks: 1, Failures: 0, Errors: 0"
END
program "$kit/kdtr" << 'END'
[ "$*" != "gen --list" ] || echo "tree-tiny a case"
[ "$1 ${3:-}" = "bench --json" ] || exit 0
echo "{}" > "$4"
echo "arguments $*"
END
program "$kit/bench_naive" << 'END'
echo "{}" > "$1"
END
program "$work/driver/nvidia-smi" << 'END'
case $* in
*=name*) echo "A card" ;;
*) echo "1.2, 3 MHz, 4 W" ;;
esac
END
mkdir "$work/broken"
program "$work/broken/nvidia-smi" << 'END'
echo "NVIDIA-SMI has failed"
exit 9
END
driver=$work/driver

if ! command -v nvidia-smi > /dev/null; then
    ends 2 "$work" test && grep -q 'no CUDA device (no nvidia-smi' "$work/out"
    report "without a driver"
fi
ends 2 "$work/broken" bench && grep -q 'no CUDA device (NVIDIA-SMI has failed)' "$work/out"
report "with a driver that does not work"
sed 's/^built .*/built SKIP no nvcc/' "$kit/kit.txt" > "$work/kit.txt"
mv "$kit/kit.txt" "$work/built.txt" && mv "$work/kit.txt" "$kit/kit.txt"
ends 2 "$driver" test && grep -q 'the kit has no programs: no nvcc' "$work/out"
report "a kit that was made without nvcc"
mv "$work/built.txt" "$kit/kit.txt"
ends 2 "$driver" other && grep -q 'usage: ' "$work/out"
report "another word is refused"

ends 0 "$driver" test && last gpu.log "EXIT 0" && grep -q '^SECONDS [0-9]* P0-5 gate_p0_5$' \
    "$work/logs/gpu.log" && grep -q '^ok P0-5 kdtr .*tree-tiny' "$work/logs/gpu.log" &&
    grep -q '^sources_sha256 4567$' "$work/logs/gpu.log"
report "gates that pass"
ends 0 "$driver" bench && [ -s "$work/logs/bench.json" ] && [ -s "$work/logs/bench-gpu.json" ] &&
    last bench.log "EXIT 0"
report "benchmarks that pass"
rm -f "$work/logs/bench.json"
ends 0 "$driver" bench --quick && [ ! -e "$work/logs/bench.json" ] &&
    grep -q '^arguments bench .*bench-gpu.json --quick$' "$work/out"
report "options are for kdtr bench alone"

program "$work/tools/compute-sanitizer" << 'END'
[ "$1" != --version ] || { echo "Version 9" && exit; }
[ "$KDTR_TEST_SCALE $CK_FORK" = "small no" ] || exit 9
tool=$2
eval "program=\${$#}"
"$program" || exit
text="ERROR SUMMARY: 0 errors"
[ "$tool" != racecheck ] || text="RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"
[ "$tool" != "${FINDS:-}" ] || text="RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)"
[ "$tool" = "${SILENT:-}" ] || echo "========= $text"
END
tools=$driver:$work/tools
if [ ! -x /usr/local/cuda/bin/compute-sanitizer ] &&
    ! command -v compute-sanitizer > /dev/null; then
    ends 2 "$driver" sanitize && grep -q 'no compute-sanitizer' "$work/out"
    report "without compute-sanitizer"
fi
ends 0 "$tools" sanitize && [ "$(grep -c '^sanitizer .*gate_p0_5: 100%' "$work/out")" -eq 4 ] &&
    [ "$(grep -c '^sizes KDTR_TEST_SCALE=small ' "$work/out")" -eq 4 ] &&
    last sanitize-memcheck.log "EXIT 0" && last sanitize-racecheck.log "EXIT 0" &&
    last sanitize-initcheck.log "EXIT 0" && last sanitize-synccheck.log "EXIT 0"
report "four tools that find nothing"
export FINDS=racecheck
ends 1 "$tools" sanitize && last sanitize-racecheck.log "EXIT 1" &&
    grep -q '^findings 1$' "$work/logs/sanitize-racecheck.log" &&
    last sanitize-synccheck.log "EXIT 0"
report "a finding that has no exit code, and the tools after it"
export FINDS='' SILENT=memcheck
ends 1 "$tools" sanitize memcheck && last sanitize-memcheck.log "EXIT 1"
report "a tool that does not say that it found nothing"
unset FINDS SILENT

# A gate of two Check cases, which runs the one that CK_RUN_CASE names, if it has it.
program "$kit/gate_p0_6" << 'END'
checks=0
for case in "P0-6 one" "P0-6 two"; do
    [ "${CK_RUN_CASE:-$case}" = "$case" ] || continue
    checks=$((checks + 1))
    [ "${CK_VERBOSITY:-}" != verbose ] || echo "tests/gate.c:7:P:$case:a_test:0: Passed"
    [ "${DIES:-}" != "$case" ] || exit 3
done
echo "100%: Checks: $checks, Failures: 0, Errors: 0"
END
export KDTR_JOBS=3
ends 0 "$tools" sanitize synccheck && last sanitize-synccheck.log "EXIT 0" &&
    grep -q '^sanitizer synccheck gate_p0_5: 100%: Checks: 1,' "$work/out" &&
    grep -q '^sanitizer synccheck gate_p0_6 (P0-6 one): 100%: Checks: 1,' "$work/out" &&
    grep -q '^sanitizer synccheck gate_p0_6 (P0-6 two): 100%: Checks: 1,' "$work/out"
report "Check cases at a time"
export DIES="P0-6 one"
ends 1 "$tools" sanitize synccheck && grep -q '^findings 1$' "$work/out" &&
    grep -q '^sanitizer synccheck gate_p0_6: ' "$work/out"
report "a gate that dies before it has named its cases is run as a whole"
unset DIES KDTR_JOBS
export CK_RUN_CASE="a case of another gate"
ends 1 "$tools" sanitize synccheck && grep -q '^not ok synccheck gate_p0_6$' "$work/out"
report "a gate that makes no check"
unset CK_RUN_CASE
rm "$kit/gate_p0_6"
mv "$kit/kdtr" "$work/kdtr"
ends 1 "$driver" test && grep -q '^not ok P0-5 kdtr verify: no named cases$' "$work/out"
report "a kit without the tool"
mv "$work/kdtr" "$kit/kdtr"

program "$work/tools/ncu" << 'END'
case $* in *"--csv $KIT/kdtr bench --point 1,8,8,200000 "*) ;; *) exit 9 ;; esac
echo "==PROF== Disconnected"
[ "${BYTES:-}" = denied ] && echo "==ERROR== ERR_NVGPUCTRPERM" && exit 1
echo "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\""
[ -z "${BYTES:-}" ] || echo "\"0\",\"flash_main\",\"dram__bytes_read.sum\",\"byte\",\"$BYTES\""
END
export KIT="$kit" BYTES=235,000,000
ends 0 "$tools" profile && grep -q '^ok DRAM bytes: .* ratio 1.0199' "$work/logs/profile.log"
report "DRAM bytes within the limit"
export BYTES=1,254,000,000
ends 1 "$tools" profile && grep -q '^not ok DRAM bytes: .* ratio 5.4425' "$work/logs/profile.log"
report "DRAM bytes beyond the limit"
export BYTES=''
ends 1 "$tools" profile && last profile.log "EXIT 1"
report "a profile without the kernel"
export BYTES=denied
ends 1 "$tools" profile && grep -q 'lets only root' "$work/out"
report "counters that the driver does not show"
unset BYTES

# From here on gates fail, crash and hang; the last one must be reached.
program "$kit/gate_p1_1" << 'END'
exit 1
END
program "$kit/gate_p1_1_mma" << 'END'
kill -SEGV $$
END
program "$kit/gate_p1_2" << 'END'
sleep 20
END
program "$kit/gate_p1_3" << 'END'
echo "reached"
echo "100%: Checks: 1, Failures: 0, Errors: 0"
END
ends 1 "$driver" test && last gpu.log "EXIT 1" && grep -q '^reached$' "$work/out" &&
    grep -q '^not ok P1-1 gate_p1_1_mma: exit code 139$' "$work/out" &&
    grep -q '^not ok P1-2 gate_p1_2: not done after 2 seconds$' "$work/out"
report "a gate that fails, one that crashes, one that hangs"
ends 1 "$tools" sanitize synccheck && grep -q '^findings 3$' "$work/out" &&
    grep -q '^sanitizer synccheck gate_p1_3: ' "$work/out"
report "the same under a sanitizer"
cp "$kit/kdtr" "$work/kdtr"
program "$kit/kdtr" << 'END'
echo "{" > "$4"
sleep 20
END
ends 1 "$driver" bench --quick && [ ! -e "$work/logs/bench-gpu.json" ] && last bench.log "EXIT 1"
report "a benchmark that hangs leaves no result file"
program "$kit/kdtr" << 'END'
[ "$*" != "gen --list" ] || { echo "tree-tiny" && exit; }
[ "$1" = gen ]
END
rm -f "$kit"/gate_p1_*
ends 1 "$driver" test && grep -q '^not ok P0-5 kdtr .*tree-tiny' "$work/out"
report "a named case that fails"
exit $failed
