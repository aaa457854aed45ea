#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# GATE: P0-9
# `kdtr step` from outside, from the repository root:
#
#   test_tool_step.sh KDTR BUNDLE_EDIT SCRATCH
#
# One line a check. SCRATCH is emptied first. KDTR_TEST_SCALE=small leaves out a limit of memory.
set -u
export LC_ALL=C

if [ $# -ne 3 ]; then
    echo "usage: test_tool_step.sh KDTR BUNDLE_EDIT SCRATCH" >&2
    exit 2
fi
kdtr=$1
edit=$2
scratch=$3
data=tests/data
gate=P0-9
. tests/scripts/tool_checks.sh

small=$data/step-small.kdtr
edited=$scratch/edited.kdtr

# TENSOR INDEX VALUE [SOURCE]: makes $edited.
change() {
    rm -f "$edited"
    "$edit" "${4:-$small}" "$edited" "$1" "$2" "$3" > "$out" 2> "$err" ||
        result 0 "$1 $2 $3: it cannot be made"
}

check_usage() {
    refuses "step without a file" "a file is missing" "$kdtr" step
    refuses "step of two files" "one file" "$kdtr" step a b
    refuses "step with an unknown option" "no option '--frob'" "$kdtr" step --frob
    refuses "step of a missing file" "none.kdtr: path: .*(IO)" "$kdtr" step "$scratch/none.kdtr"
    for file in tree-tiny masked-first module-deepseek-a; do
        refuses "step without a draft: $file" "draft_logp: .*(BUNDLE_MISSING)" \
            "$kdtr" step $data/$file.kdtr
    done
}

check_agreement() {
    for case in step-small step-kimi step-batch; do
        succeeds "gen $case" "$kdtr" gen $case -o "$scratch/$case.kdtr"
        succeeds "step $case" "$kdtr" step "$scratch/$case.kdtr"
        shows "step $case: trees" '^  draft trees: .* ok$'
        shows "step $case: o" '^  o \[.* 0 of [0-9]* elements differ in bits: ok$'
        shows "step $case: lse" '^  lse \[.* 0 of [0-9]* elements differ in bits: ok$'
    done
    shows "an inactive request is said to be so" '^  request 2: inactive$'
    shows "a root alone accepts nothing" '^  request 0: accepted 0 tokens; bonus [0-9]*$'
    succeeds "step-small is the committed one" cmp "$small" "$scratch/step-small.kdtr"
}

# The whole text of the committed case. Its numbers have the same bits everywhere.
check_text() {
    succeeds "step step-small" "$kdtr" step "$small"
    sed -e 1d -e 's/ *$//' "$out" > "$scratch/actual"
    cat > "$scratch/expected" << 'END'
  request 0, 12 nodes                   token      score        lse
    0 *                                 20677     0.0000     6.1208
    |-- 1 *                             19959    -0.1207     7.8662
    |   |-- 2 *                         24302    -0.2624     5.8850
    |   |   |-- 3                         403    -0.6486     7.1617
    |   |   |   |-- 4                   29784    -1.1149     6.0764
    |   |   |   |   |-- 5                4080    -1.8061     5.9616
    |   |   |   |   `-- 9               16187    -2.5736     5.7802
    |   |   |   `-- 10                   4271    -2.5915     6.4544
    |   |   `-- 6 *                      7910    -1.8683     7.3159
    |   |       `-- 7                   29784    -2.3347     5.7551
    |   `-- 11                          25399    -2.6569     6.5009
    `-- 8                                7372    -2.5569     6.4997
  request 0: accepted 3 tokens: 19959 24302 7910; bonus 18991
  draft trees: 0 of 1 requests differ: ok
  o [12,2,512]: worst error 0 at [0,0,0], 0 of 12288 elements differ in bits: ok
  lse [12,2]: worst error 0 at [0,0], 0 of 24 elements differ in bits: ok
END
    passed=0
    cmp -s "$scratch/expected" "$scratch/actual" && passed=1
    result $passed "step step-small: the text"
}

# What another draft gives is another tree: a mismatch, whatever the values.
check_drafts() {
    for value in nan inf -inf 1 -1e30 -100 ^31; do
        change draft_logp 0 $value
        differs "log-probability $value" 'differ: MISMATCH$' "$kdtr" step "$edited"
    done
    for value in -1 9223372036854775807 -9223372036854775808 5; do
        for tensor in draft_tokens node_tokens root_tokens; do
            change $tensor 0 $value
            differs "$tensor $value" '^  draft trees: 1 of 1 .* MISMATCH$' "$kdtr" step "$edited"
        done
    done
    shows "the node that differs is named" 'node 0 differs$'
    change draft_logp 39 nan # behind everything that the budget reaches
    succeeds "a NaN behind the budget" "$kdtr" step "$edited"
    change draft_logp 39 0 # the last rank above the others: left out, and behind the budget
    succeeds "a row out of order behind the budget" "$kdtr" step "$edited"
    change parents 5 0
    differs "another tree in the bundle" '^  draft trees: 1 of 1 .* MISMATCH$' \
        "$kdtr" step "$edited"
    change mask_words 5 ^0 "$scratch/step-batch.kdtr"
    differs "another mask in the bundle" '^  draft trees: 1 of 4 .* MISMATCH$' \
        "$kdtr" step "$edited"
    change lse 3 ^0
    differs "the last bit of an lse" '^  lse .* 1 of .*: MISMATCH$' "$kdtr" step "$edited"
    shows "the trees agree all the same" '^  draft trees: .* ok$'
}

check_budgets() {
    for value in 0 10 12 65535; do
        change budget 0 $value
        differs "budget $value" '^  draft trees: 1 of 1 .* MISMATCH$' "$kdtr" step "$edited"
    done
    for value in -1 -2147483648 65536 2147483647; do
        change budget 0 $value
        refuses "budget $value" "budget: .*(INVALID_ARGUMENT)" "$kdtr" step "$edited"
        change budget 2 $value "$scratch/step-batch.kdtr"
        succeeds "budget $value of an inactive request" "$kdtr" step "$edited"
    done
}

check_targets() {
    for value in -1 32000 9223372036854775807 -9223372036854775808; do
        change target_ids 0 $value
        succeeds "target id $value" "$kdtr" step "$edited"
        shows "target id $value is no token" '^  request 0: accepted 0 tokens; no bonus token$'
    done
    change target_ids 1 7
    succeeds "another target" "$kdtr" step "$edited"
    shows "another target: path" '^  request 0: accepted 1 token: 19959; bonus 7$'
    change vocab_size 0 19960
    succeeds "a smaller vocabulary" "$kdtr" step "$edited"
    shows "a smaller vocabulary: path" '^  request 0: accepted 1 token: 19959; no bonus token$'
    for value in 0 -1 -9223372036854775808; do
        change vocab_size 0 $value
        refuses "vocab_size $value" "vocab_size: .*(INVALID_ARGUMENT)" "$kdtr" step "$edited"
    done
}

check_shapes() {
    for tensor in draft_logp draft_tokens root_tokens budget target_ids node_tokens; do
        "$edit" empty "$small" "$edited" $tensor
        named=$tensor
        [ $tensor = draft_logp ] && named=draft_tokens # its own shape is free
        refuses "empty $tensor" "$named: .*(BUNDLE_SHAPE)" "$kdtr" step "$edited"
    done
    "$edit" empty "$small" "$scratch/half.kdtr" draft_logp
    "$edit" empty "$scratch/half.kdtr" "$edited" draft_tokens
    differs "a draft of no rank" 'tree has 1 nodes, the bundle.s 12' "$kdtr" step "$edited"
    "$edit" zero "$small" "$edited" draft_logp
    differs "a draft of equal tokens' scores" '^  draft trees: 1 of 1 .* MISMATCH$' \
        "$kdtr" step "$edited"
}

# A mask of 65,536 nodes is more than the limit. AddressSanitizer's own memory is too, so the small
# scale leaves this out.
check_memory() {
    [ "${KDTR_TEST_SCALE:-full}" = full ] || return
    change budget 1 65535 "$scratch/step-batch.kdtr"
    limited='ulimit -v 300000; exec "$@"'
    refuses "too little memory" "(OUT_OF_MEMORY)" sh -c "$limited" sh "$kdtr" step "$edited"
}

check_usage
check_agreement
check_text
check_drafts
check_budgets
check_targets
check_shapes
check_memory
exit $failed
