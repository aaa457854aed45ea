#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# GATE: P1-3
# `kdtr selftest` from outside, from the repository root, on the emulator:
#
#   test_tool_selftest.sh KDTR FOLDER SCRATCH
#
# FOLDER holds a libkdtr_cuda.so.0 whose device is the emulator. SCRATCH is emptied first.
set -u
export LC_ALL=C
if [ $# -ne 3 ]; then
    echo "usage: test_tool_selftest.sh KDTR FOLDER SCRATCH" >&2
    exit 2
fi
kdtr=$1
emulator=$2
scratch=$3
gate=P1-3
. tests/scripts/tool_checks.sh

refuses "selftest with an unknown option" "selftest does not take '--fast'" "$kdtr" selftest --fast
succeeds "help of selftest" "$kdtr" selftest --help
succeeds "selftest" env LD_LIBRARY_PATH="$emulator" "$kdtr" selftest
shows "selftest: naive has the reference's bits" \
    '^  naive: 10 cases, 0 of [1-9][0-9]* elements differ in bits: ok$'
shows "selftest: flash" '^  flash: [1-9][0-9]* cases, 0 of [1-9][0-9]* elements beyond, .*: ok$'
shows "selftest: the verdict names the device" '^kdtr SIMT emulator: passed$'
passed=1
grep -q 'exact' "$out" && passed=0
result $passed "selftest: nothing about exact mode unless it is asked for"
succeeds "selftest --exact" env LD_LIBRARY_PATH="$emulator" "$kdtr" selftest --exact
shows "selftest --exact: the check" \
    '^  exact mode: rows of an mma do not depend on their neighbours: ok$'
shows "selftest --exact: flash in exact mode" \
    '^  flash, exact mode: [1-9][0-9]* cases, 0 of [1-9][0-9]* elements beyond, .*: ok$'
shows "selftest --exact: nodes against their decodes" \
    '^  flash, exact mode: 0 of [1-9][0-9]* elements have not the bits of a decode: ok$'
# An emulator whose mma lets a row depend on its neighbour.
differs "selftest --exact: a device that fails" '^kdtr SIMT emulator: FAILED$' \
    env LD_LIBRARY_PATH="$emulator" SIMT_LEAK_ROWS=1 "$kdtr" selftest --exact
shows "selftest --exact: what failed" 'do not depend on their neighbours: FAILED$'
exit $failed
