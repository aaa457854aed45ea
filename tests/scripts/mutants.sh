#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plants the bugs of tests/mutants.txt one by one in a copy of the tree and checks that the suites
# fail: mutants.sh [NAME...], where a name may be a pattern such as 'flash-*'
# A line of the list, separated by ~~: name, file, sed expression, suite that must fail (its log),
# and perhaps the Check case of it that is run.
set -u
copy=out/mutants/tree
rm -rf out/mutants
mkdir -p "$copy"
git ls-files | grep -v '^phases/evidence/' | tar -cf - -T - | tar -xf - -C "$copy"
(cd "$copy" && KDTR_NVCC=none ninja -t clean > /dev/null 2>&1)
survivors=0
killed=0
field() {
    printf '%s\n' "$line" | awk -F ' ~~ ' -v n="$1" '{ print $n }'
}

while read -r line; do
    name=$(field 1)
    file=$(field 2)
    expression=$(field 3)
    suite=$(field 4)
    check_case=$(field 5)
    case $name in '' | '#'*) continue ;; esac
    chosen=$#
    for pattern in "$@"; do
        # shellcheck disable=SC2254 # a pattern
        case $name in $pattern) chosen=0 ;; esac
    done
    [ "$chosen" -eq 0 ] || continue
    cp "$copy/$file" out/mutants/original
    sed "$expression" out/mutants/original > "$copy/$file"
    if cmp -s out/mutants/original "$copy/$file"; then
        echo "not ok $name: the expression changes nothing in $file"
        survivors=$((survivors + 1))
    elif ! (cd "$copy" && { [ -z "$check_case" ] || export CK_RUN_CASE="$check_case"; } &&
        KDTR_NVCC=none ninja "out/test/$suite.log" > ../build.log 2>&1); then
        echo "not ok $name: it does not build"
        tail -n 5 out/mutants/build.log
        survivors=$((survivors + 1))
    elif awk -f tests/scripts/results.awk "$copy/out/test/$suite.log" | grep -q '^fail'; then
        echo "ok $name: $suite fails"
        killed=$((killed + 1))
    else
        echo "not ok $name: $suite passes with the bug in $file"
        survivors=$((survivors + 1))
    fi
    cp out/mutants/original "$copy/$file"
done < tests/mutants.txt
echo "$killed passed, $survivors failed"
[ "$survivors" -eq 0 ]
