#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the scripts that test the tool from outside share; they source it with $gate and $scratch
# set. It empties the folder $scratch. One line a check, `ok GATE tool: TEXT` or `not ok`.
failed=0
rm -rf "$scratch"
mkdir -p "$scratch" || exit 2
out=$scratch/stdout
err=$scratch/stderr

result() { # PASSED TEXT: prints the line of a check
    if [ "$1" -eq 1 ]; then
        echo "ok $gate tool: $2"
    else
        echo "not ok $gate tool: $2"
        sed 's/^/    /' "$out" "$err" | head -n 20
        failed=1
    fi
}

run() { # COMMAND...: keeps its output, and its exit code in $code
    "$@" > "$out" 2> "$err" < /dev/null
    code=$?
}

# TEXT COMMAND...: must exit with 0 and say nothing on standard error.
succeeds() {
    text=$1
    shift
    run "$@"
    passed=0
    [ "$code" -eq 0 ] && [ ! -s "$err" ] && passed=1
    result $passed "$text"
}

# TEXT PATTERN COMMAND...: must exit with 2 and one matching line on standard error alone.
refuses() {
    text=$1
    pattern=$2
    shift 2
    run "$@"
    passed=0
    [ "$code" -eq 2 ] && [ ! -s "$out" ] && [ "$(wc -l < "$err")" -eq 1 ] &&
        grep -q "^kdtr: .*$pattern" "$err" && passed=1
    result $passed "$text"
}

# TEXT PATTERN COMMAND...: must exit with 1, a matching line on standard output and no error.
differs() {
    text=$1
    pattern=$2
    shift 2
    run "$@"
    passed=0
    [ "$code" -eq 1 ] && [ ! -s "$err" ] && grep -q "$pattern" "$out" && passed=1
    result $passed "$text"
}

# TEXT PATTERN: the last command's standard output has a matching line.
shows() {
    passed=0
    grep -q -e "$2" "$out" && passed=1
    result $passed "$1"
}
