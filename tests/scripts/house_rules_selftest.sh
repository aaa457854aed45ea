#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# GATE: P0-11
# The house rules on trial: a tiny tree that keeps them passes; each violation planted in a copy of
# it fails, by its rule and no other.
set -u
export LC_ALL=C

rules=$(cd "$(dirname "$0")" && pwd)/house_rules.sh
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 2' INT TERM
cases=0
failures=0

# Written so that this file does not hold what it plants.
gate="GATE: P0"
case_of="tcase_create(\"P0"
label=eq
spdx="SPDX-License-Identifier: Apache-2.0"

# file PATH TEXT: writes a file of the tree, \n and octal escapes meant.
file() {
    mkdir -p "$(dirname "$work/tree/$1")"
    printf '%b' "$2" >"$work/tree/$1"
}

make_tree() {
    file phases/phase0.md "# Phase 0\n\n### P0-1 Bundles {#p0_1}\n\nStatus: built\n\n"
    file phases/phase1.md "# Phase 1\n\n### P1-1 The bound\nStatus: planned\n"
    file spec/notation.md "# Notation\n\nUTF-8 \303\227 is fine.\n\n**($label-score)**\n"
    file ref/a.h "// $spdx\nint a(void);\n"
    file ref/a.c "// $spdx\n#include \"a.h\"\n#include <math.h>
int a(void) {\n    return 1;\n}\n"
    file kernels/k.cu "// $spdx\n#include <cuda_runtime.h>\n#include \"ref/a.h\"
#include \"simt.h\"
/* $label-score */\n__global__ void k(void) {\n}\n"
    file kernels/ptx.cuh "// $spdx\nstatic int p(void) { asm volatile(\"\"); }\n"
    file capi/c.c "// $spdx\n#include \"../ref/a.h\"\n#include \"../kernels/ptx.cuh\"\n"
    file tests/simt/simt.h "// $spdx\n__device__ int s;\n"
    file tests/bounds.h "// $spdx\n#define SMALL 1e-3\n"
    file tests/test_a.c "// $spdx\n#include \"ref/a.h\"\n#include \"bounds.h\"
const double x = 1e-3; /* not a tolerance: a step */ /* 1e-4 */\nvoid t(void) {
    $case_of-1 bundles\");\n}\n"
    file tests/scripts/t.sh "#!/bin/sh\n# $spdx\nexit 0\n"
    file bench/results/r.json '{\t"rows": [] }'
    file build.ninja "# $spdx\nbuild x: cc ref/a.c kernels/k.cu capi/c.c | tests/test_a.c\n"
}

# run RULE NAME: the copy must fail by RULE only; an empty RULE must pass.
run() {
    cases=$((cases + 1))
    (cd "$work/copy" && sh "$rules") >"$work/log" 2>&1
    status=$?
    others=$(grep -v -e "^$1: [^:]*:[0-9]*: ." -e '^NOT BUILT ' -e '^house rules: ' \
        -e 'ok P0-11 house rules$' "$work/log")
    if [ -n "$1" ]; then
        hits=$(grep -c "^$1: [^:]*:[0-9]*: ." "$work/log")
        [ "$status" -eq 1 ] && [ "$hits" -gt 0 ] && [ -z "$others" ] && return
    else
        [ "$status" -eq 0 ] && [ -z "$others" ] && return
    fi
    failures=$((failures + 1))
    echo "FAIL: $2: status $status, expected rule '${1:-none}', got:"
    sed 's/^/    /' "$work/log"
}

copy() {
    rm -rf "$work/copy"
    cp -r "$work/tree" "$work/copy"
}

# plant RULE FILE TEXT: TEXT at the end of FILE breaks RULE.
plant() {
    copy
    mkdir -p "$(dirname "$work/copy/$2")"
    printf '%b' "$3" >>"$work/copy/$2"
    run "$1" "$2 + $3"
}

# change RULE FILE SED: an edit of FILE breaks RULE.
change() {
    copy
    sed "$3" "$work/tree/$2" >"$work/copy/$2"
    run "$1" "$2 ~ $3"
}

# lines COUNT TEXT: TEXT, COUNT times.
lines() {
    awk -v count="$1" -v text="$2" 'BEGIN { while (count-- > 0) { printf "%s\\n", text } }'
}

try_links() {
    change gate phases/phase0.md 's/P0-1/P0-3/'
    change gate phases/phase0.md 's/built/planned/'
    change gate phases/phase0.md '/Status/d'
    change gate phases/phase0.md 's/built/done/'
    change gate tests/test_a.c 's/P0-1/P0-2/'
    change gate tests/test_a.c 's|tcase|// tcase|'
    change gate phases/phase0.md 's/^### P0-1/#### P0-1/'
    change '' tests/test_a.c 's/tcase_create(/test_tcase(suite, /'
    change '' tests/test_a.c 's/tcase_create(/test_tcase(suite,\n    /'
    change gate tests/test_a.c 's/tcase_create("P0-1/test_tcase(suite, "P0-2/'
    plant gate phases/phase0.md '### P0-1 Again\nStatus: built\n'
    plant gate phases/phase0.md '### P1-7 Lost\nStatus: planned\n'
    plant gate tests/scripts/t.sh "# $gate-9\n"
    change list build.ninja 's|ref/a\.c||'
    plant list tests/fuzz/f.c "// $spdx\n"
    plant equation ref/a.c "/* see $label-nothing */\n"
    plant equation spec/notation.md "**($label-score)**\n"
}

try_code() {
    plant include ref/a.c '#include "../capi/c.h"\n'
    plant include ref/a.c '#include <cuda_runtime.h>\n'
    plant include ref/a.c '#include "kernels/ptx.cuh"\n'
    plant include kernels/k.cu '#include "capi/c.c"\n'
    plant include kernels/k.cu '#include "bounds.h"\n'
    plant include kernels/k.cu '#include <cuda_bf16.h>\n'
    plant include capi/c.c '#include "../tests/bounds.h"\n'
    plant include capi/c.c '#include "simt.h"\n'
    plant include bench/b.h "// $spdx\n#include \"bounds.h\"\n"
    plant cuda ref/a.c 'static __device__ int d;\n'
    plant cuda tests/test_a.c 'void f(void) { k<<<1, 1>>>(); }\n'
    plant ptx kernels/k.cu 'void q(void) { asm volatile("mov"); }\n'
    plant ptx capi/c.c 'void q(void) { __asm__("nop"); }\n'
    plant tolerance tests/test_a.c 'double y = 2e-6f;\n'
    plant tolerance capi/c.c 'double y = 1.5E-3;\n'
    plant tolerance tests/test_a.c 'double y = 0.0001;\n'
    plant '' tests/test_a.c '/* 1e-3, __global__,\n asm("x") */ char *s = "1e-3 /*"; // <<<\n'
}

try_text() {
    change spdx ref/a.c 1d
    change spdx build.ninja 1d
    change spdx tests/scripts/t.sh 2d
    plant file-length ref/a.h "$(lines 400 'extern int z;')"
    plant function-length ref/a.c "int b(void)\n{\n$(lines 68 '    ;')}\n"
    plant function-length ref/a.c "static int b(int x,\n    int y) {\n$(lines 68 '    ;')}\n"
    plant function-length tests/scripts/t.sh "f() {\n$(lines 69 '    :')}\n"
    plant '' ref/a.c "int b(void) {\n$(lines 68 '    ;')}\nint t[] = {\n$(lines 80 '    1,')};\n"
    plant line-length ref/a.h "/* $(lines 1 "$(printf '%098d' 0)")*/\n"
    plant tab ref/a.h '\tint z;\n'
    plant tab phases/phase1.md 'a\tb\n'
    plant trailing-blank ref/a.h 'int z; \n'
    plant trailing-blank spec/notation.md 'text\r\n'
    plant final-newline ref/a.h 'int z;'
    plant final-newline spec/notation.md 'text'
    plant unicode ref/a.h '/* \303\227 */\n'
    plant unicode spec/notation.md 'a\302\240b\n'
    plant unicode spec/notation.md 'a\342\200\213b\n'
    plant word spec/notation.md 'see ../sha''red/x\n'
    plant word bench/results/r.json '"/wor''k/x"\n'
}

# summary RESULTS CODE LINE NAME: what the summary says of a built gate with these results.
summary() {
    cases=$((cases + 1))
    printf 'abc\n' >"$work/sources.sha256"
    mkdir -p "$work/phases"
    printf '### P1-2 Resources\nStatus: built\n*Runs*: %s.\n' "$runs" >"$work/phases/phase1.md"
    printf "$1" >"$work/results.tsv"
    awk -F '\t' -v gates=all -f "$(dirname "$rules")/summary.awk" "$work/sources.sha256" \
        "$work/phases/phase1.md" "$work/results.tsv" >"$work/log"
    status=$?
    [ "$status" -eq "$2" ] && grep -q "^ *$3" "$work/log" && return
    echo "FAIL: summary: $4"
    failures=$((failures + 1))
}

# log TEXT WANTED NAME: a line that results.awk makes of a log of this text.
log() {
    cases=$((cases + 1))
    printf "PLACE cpu\n$1EXIT 0\n" >"$work/a.log"
    awk -f "$(dirname "$rules")/results.awk" "$work/a.log" | tr '\t' ' ' >"$work/log"
    grep -q "^$2\$" "$work/log" && return
    echo "FAIL: results: $3"
    failures=$((failures + 1))
}

try_results() {
    log 'stale P1-6 a.json: old\n' "stale P1-6 cpu $work/a.log P1-6 a.json: old" 'a stale result'
    log 'note P1-6 66 of 60\n' "fail unit cpu $work/a.log no test ran: $work/a.log" \
        'a note alone is no result'
    log 'a.c:1:P:P1-6 speed:t:0: Passed\nnote P1-6 66 of 60\n' \
        "note P1-6 cpu $work/a.log P1-6 66 of 60" 'a note beside a pass'
}

try_summary() {
    tab=$(printf '\t')
    runs=CPU
    summary "pass${tab}P1-2${tab}cpu${tab}x${tab}it\n" 0 'cpu: 1 passed' 'a gate that passes'
    summary "fail${tab}P1-2${tab}cpu${tab}x${tab}it\n" 1 'cpu: 0 passed, 1 FAILED' 'one that fails'
    summary "skip${tab}P1-2${tab}cpu${tab}x${tab}no tool\n" 0 'NOT RUN  no tool' \
        'one without a tool'
    summary '' 1 'FAILED   no test of this gate ran' 'one that nothing names'
    summary "stale${tab}P1-2${tab}cpu${tab}x${tab}old.json\n" 0 'STALE    old.json' \
        'one whose result is of other sources'
    summary "stale${tab}P1-2${tab}cpu${tab}x${tab}old.json\n" 0 '0 passed, 0 failed, 1 skipped$' \
        'a stale result is no pass'
    summary "pass${tab}P1-2${tab}cpu${tab}x${tab}it\nstale${tab}P1-2${tab}cpu${tab}x${tab}o\n" 0 \
        '1 passed, 0 failed, 1 skipped$' 'a stale result beside a pass'
    with_pass="pass${tab}P1-2${tab}cpu${tab}x${tab}it\n"
    summary "${with_pass}note${tab}P1-2${tab}cpu${tab}x${tab}66 of 60\n" 0 \
        'ACCEPTED 66 of 60' 'a limit that was missed and is accepted'
    summary "note${tab}P1-2${tab}cpu${tab}x${tab}66 of 60\n" 1 'FAILED   no test of this gate ran' \
        'a note alone is no result'
    runs='CPU, GPU'
    summary "$with_pass" 0 'NOT RUN  on a GPU: no evidence' 'one that a GPU must run'
    runs='CPU, on what a GPU measured'
    summary "$with_pass" 0 'cpu: 1 passed' 'one that reads what a GPU measured'
    cases=$((cases + 1))
    ! grep -q 'NOT RUN' "$work/log" || {
        echo "FAIL: summary: a gate that reads measurements is asked for on a GPU"
        failures=$((failures + 1))
    }
    try_results
    try_sanitizers
    printf 'SKIP no nvcc\n' >"$work/report"
    cases=$((cases + 1))
    sh "$(dirname "$rules")/resources.sh" "$work/report" | grep -q '^skip P1-2 .*: no nvcc$' || {
        echo "FAIL: resources: no compiler is not a skipped P1-2"
        failures=$((failures + 1))
    }
}

# sanitized EXPECTED SED NAME: what gate P1-5 says of evidence that SED has changed.
sanitized() {
    cases=$((cases + 1))
    sed "$2" "$work/clean.txt" >"$work/gpu.txt"
    sh "$(dirname "$rules")/gate_p1_5.sh" "$work/gpu.txt" 12ab "$work/kit.ninja" >"$work/log"
    said=$(grep -v '^ok ' "$work/log")
    echo "$said" | grep -q "$1" && ! echo "$said" | grep -qv "$1" || {
        echo "FAIL: P1-5: $3"
        cat "$work/log"
        failures=$((failures + 1))
    }
}

# Evidence of four tools on two gates, one of them in two parts.
try_sanitizers() {
    printf 'build out/gpu-kit/gate_p0_5: nvcc_program a.o\n%s\n' \
        'build out/gpu-kit/gate_p1_1: nvcc_program b.o' >"$work/kit.ninja"
    echo "sources_sha256 12ab" >"$work/clean.txt"
    for tool in memcheck racecheck initcheck synccheck; do
        word=ERROR
        counted=errors
        [ $tool != racecheck ] ||
            { word=RACECHECK && counted="hazards displayed (0 errors, 0 warnings)"; }
        for part in 'gate_p0_5:' 'gate_p1_1 (P1-1 cases):' 'gate_p1_1 (P1-1 sizes):'; do
            echo "sanitizer $tool $part 100%: Checks: 3, Failures: 0, Errors: 0;" \
                "$word SUMMARY: 0 $counted; exit code 0" >>"$work/clean.txt"
        done
    done
    cases=$((cases + 1))
    [ "$(sh "$(dirname "$rules")/gate_p1_5.sh" "$work/clean.txt" 12ab "$work/kit.ninja" |
        grep -c '^ok P1-5 ')" -eq 8 ] || {
        echo "FAIL: P1-5: clean evidence does not pass"
        failures=$((failures + 1))
    }
    sanitized '^not ok P1-5 synccheck on gate_p0_5: it was not run$' '/synccheck gate_p0_5/d' \
        'a gate without a tool'
    sanitized '^not ok P1-5 racecheck on gate_p1_1: 1 of 2 parts$' \
        '/racecheck.*sizes/s/0 hazards/2 hazards/' 'hazards'
    sanitized '^not ok P1-5 memcheck on gate_p0_5: 1 of 1 parts$' \
        '/memcheck gate_p0_5/s/exit code 0/exit code 99/' 'an exit code'
    sanitized '^not ok P1-5 memcheck on gate_p0_5: 1 of 1 parts$' \
        '/memcheck gate_p0_5/s/Checks: 3/Checks: 0/' 'no check was made'
    sanitized '^not ok P1-5 initcheck on gate_p1_1: 2 of 2 parts$' \
        '/initcheck gate_p1_1/s/100%.*0;/no result; no summary;/' 'no result'
    sanitized '^not ok P1-5 racecheck on gate_p1_1: not over .*sizes' '/racecheck.*sizes/d' \
        'a part without a tool'
    sanitized '^not ok P1-5 ' '$s/$/\nfindings 1/' 'findings that no line names'
    sanitized '^not ok P1-5 memcheck on gate_p0_5: ' '$s/$/\nnot ok memcheck gate_p0_5/' \
        'a gate that is said to have failed'
    sanitized '^not ok P1-5 memcheck on gate_p0_5: ' \
        '/memcheck gate_p0_5/s/ERROR SUMMARY: 0 errors/RACECHECK SUMMARY: 0 hazards/' \
        'the summary of another tool'
    sanitized '^stale P1-5 ' '1s/$/x/;$s/$/\nsources_sha256 12ab/' 'a later line that has the hash'
    sanitized '^stale P1-5 ' 's/12ab/34cd/' 'evidence of other sources'
}

make_tree
copy
run '' 'the clean tree'
grep -q '^NOT BUILT P1-1 The bound$' "$work/log" || {
    echo "FAIL: a planned gate is not listed as NOT BUILT"
    failures=$((failures + 1))
}
try_links
try_code
try_text
try_summary
[ "$failures" -eq 0 ] || {
    echo "house rules selftest: $cases cases, $failures failures"
    echo "not ok P0-11 house rules selftest"
    exit 1
}
echo "house rules selftest: $cases cases, 0 failures"
echo "ok P0-11 house rules selftest"
