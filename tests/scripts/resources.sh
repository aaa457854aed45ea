#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# GATE: P1-2
# Judges the compiler's report of the flash kernels (gate P1-2): resources.sh REPORT
# Each kernel for sm_90a and sm_120a: no stack, no spills, static shared memory of a block within
# 101,376 bytes. Dynamic shared memory has a static_assert in kernels/flash_block.cuh and
# kernels/flash_exact.cuh. flash_main and flash_exact_main have 128 registers: their warps take
# theirs from what the block was launched with, and would wait for ever for more.
set -eu
report=$1
if [ "$(head -c 4 "$report")" = SKIP ]; then
    echo "skip P1-2 the resources of sm_120: $(sed 's/^SKIP //' "$report")"
    exit 0
fi
awk '
function fail(why) { print "FAIL: " kernel " for " arch ": " why; failed = 1 }
/Compiling entry function/ {
    split($0, part, "\047")
    kernel = part[2]; arch = part[4]
    compiled[arch]++
}
/bytes stack frame/ && kernel != "" {
    if ($1 != 0) fail($1 " bytes of stack")
    if ($5 != 0 || $9 != 0) fail($5 " bytes of spill stores, " $9 " of spill loads")
}
/Used .* registers/ {
    shared = 0
    for (i = 2; i <= NF; i++) if ($i ~ /^smem/) shared = $(i - 2)
    if (kernel ~ /flash_(exact_)?main/ && $5 != 128) fail($5 " registers in place of 128")
    if (shared > 101376) fail(shared " bytes of shared memory")
    print kernel " for " arch ": " $5 " registers, " shared " bytes of static shared memory"
    kernel = ""
}
END {
    if (compiled["sm_90a"] != 11 || compiled["sm_120a"] != 11) {
        print "FAIL: not eleven kernels for sm_90a and for sm_120a"; failed = 1
    }
    print (failed ? "not ok" : "ok") " P1-2 the resources of sm_120: compiler report"
    exit failed
}' "$report"
