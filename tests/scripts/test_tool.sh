#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# GATE: P0-2
# The command-line tool from outside, from the repository root:
#
#   test_tool.sh KDTR BUNDLE_EDIT SCRATCH
#
# One line a check: exit code, the line on standard error, what is left on the disk. SCRATCH is
# emptied first. KDTR_TEST_SCALE=small leaves out the 245 MB case.
set -u
export LC_ALL=C
# A terminal's or a caller's settings must not change what is compared.
unset NO_COLOR

if [ $# -ne 3 ]; then
    echo "usage: test_tool.sh KDTR BUNDLE_EDIT SCRATCH" >&2
    exit 2
fi
kdtr=$1
edit=$2
scratch=$3
data=tests/data
gate=P0-2
. tests/scripts/tool_checks.sh

# TEXT PATTERN SOURCE TENSOR INDEX VALUE: info and verify must refuse a bundle so edited. The file
# itself is sound, so info lists its tensors before it refuses the problem.
refuses_edit() {
    edited=$scratch/edited.kdtr
    rm -f "$edited"
    if ! "$edit" "$3" "$edited" "$4" "$5" "$6" > "$out" 2> "$err"; then
        result 0 "$1: it cannot be made"
        return
    fi
    refuses "$1 (verify)" "edited.kdtr: $2" "$kdtr" verify "$edited"
    run "$kdtr" info "$edited"
    passed=0
    [ "$code" -eq 2 ] && [ "$(wc -l < "$err")" -eq 1 ] && grep -q "^  $4 " "$out" &&
        ! grep -q '^[a-z]* problem: ' "$out" && grep -q "^kdtr: .*edited.kdtr: $2" "$err" &&
        passed=1
    result $passed "$1 (info)"
}

# TEXT PATTERN MODE SOURCE NUMBER: the same for a bundle whose bytes are damaged.
refuses_damage() {
    damaged=$scratch/damaged.kdtr
    rm -f "$damaged"
    if ! "$edit" "$3" "$4" "$damaged" "$5" > "$out" 2> "$err"; then
        result 0 "$1: it cannot be made"
        return
    fi
    refuses "$1 (info)" "damaged.kdtr: $2" "$kdtr" info "$damaged"
    refuses "$1 (verify)" "damaged.kdtr: $2" "$kdtr" verify "$damaged"
}

check_help() {
    succeeds "--version" "$kdtr" --version
    shows "--version names version and numerics" '^kdtr [0-9]*\.[0-9]*\.[0-9]*, numerics [0-9]*$'
    succeeds "help" "$kdtr" help
    cp "$out" "$scratch/help"
    succeeds "--help" "$kdtr" --help
    passed=0
    cmp -s "$scratch/help" "$out" && passed=1
    result $passed "--help is help"
    for command in gen info verify step; do
        succeeds "help $command" "$kdtr" help $command
        shows "help $command: usage" '^Usage:$'
        shows "help $command: exit codes" '^Exit codes:$'
        shows "help $command: examples" '^Examples:$'
        cp "$out" "$scratch/help"
        succeeds "$command --help" "$kdtr" $command --help
        passed=0
        cmp -s "$scratch/help" "$out" && passed=1
        result $passed "$command --help is help $command"
    done
    succeeds "--help after an argument" "$kdtr" verify missing.kdtr --help
}

check_usage() {
    refuses "no command" "a command is missing" "$kdtr"
    refuses "unknown command" "no command 'frob'" "$kdtr" frob
    refuses "unknown option" "no command '--frob'" "$kdtr" --frob
    refuses "help of an unknown command" "no command 'frob'" "$kdtr" help frob
    refuses "help of two commands" "one command" "$kdtr" help gen info
    refuses "gen without a case" "a case is missing" "$kdtr" gen -o "$scratch/x.kdtr"
    refuses "gen without -o" "-o FILE is missing" "$kdtr" gen tree-tiny
    refuses "gen -o without a file" "-o needs a file name" "$kdtr" gen tree-tiny -o
    refuses "gen of two cases" "one case at a time" \
        "$kdtr" gen tree-tiny decode -o "$scratch/x.kdtr"
    refuses "gen with an unknown option" "no option '-x'" "$kdtr" gen -x
    refuses "gen of an unknown case" "(NOT_FOUND)" "$kdtr" gen no-such -o "$scratch/x.kdtr"
    refuses "info without a file" "one file" "$kdtr" info
    refuses "info of two files" "one file" "$kdtr" info a b
    refuses "verify without a file" "a file is missing" "$kdtr" verify
    refuses "verify of two files" "one file at a time" "$kdtr" verify a b
    refuses "verify with an unknown option" "no option '--frob'" "$kdtr" verify --frob
    refuses "--backend without a value" "--backend needs a value" "$kdtr" verify a --backend
    refuses "unknown backend" "no backend 'fast'" "$kdtr" verify a --backend fast
    refuses "--threads without a value" "--threads needs a value" "$kdtr" verify a --threads
    for threads in 0 -1 257 two 1x 99999999999999999999 ''; do
        refuses "--threads '$threads'" "--threads takes 1 to 256" \
            "$kdtr" verify a --threads "$threads"
    done
    refuses "--threads with naive" "--threads is for" \
        "$kdtr" verify a --backend naive --threads 2
    passed=0
    [ ! -e "$scratch/x.kdtr" ] && passed=1
    result $passed "wrong usage writes nothing"
}

check_files() {
    refuses "missing file (info)" "none.kdtr: path: .*(IO)" "$kdtr" info "$scratch/none.kdtr"
    refuses "missing file (verify)" "none.kdtr: path: .*(IO)" "$kdtr" verify "$scratch/none.kdtr"
    refuses "a folder as input" "path: .*(IO)" "$kdtr" verify "$scratch"
    refuses "no folder to write to" "path: .*(IO)" \
        "$kdtr" gen tree-tiny -o "$scratch/none/x.kdtr"
    mkdir -p "$scratch/folder"
    refuses "a folder as output" "path: .*(IO)" "$kdtr" gen tree-tiny -o "$scratch/folder"
    mkfifo "$scratch/pipe"
    refuses "a pipe as output" "path: .*(IO)" "$kdtr" gen tree-tiny -o "$scratch/pipe"
    passed=0
    [ -p "$scratch/pipe" ] && passed=1
    result $passed "the pipe is still one"
    # A limit of 0 blocks stops the write itself, also for root; the file there must stay whole.
    "$kdtr" gen tree-tiny -o "$scratch/kept.kdtr"
    cp "$scratch/kept.kdtr" "$scratch/before.kdtr"
    : > "$err"
    sh -c 'trap "" XFSZ; ulimit -f 0; "$@"; echo "exit $?"' sh \
        "$kdtr" gen tree-small -o "$scratch/kept.kdtr" 2>&1 | cat > "$out"
    passed=0
    grep -q '^kdtr: .*kept.kdtr: path: .*(IO)$' "$out" && grep -q '^exit 2$' "$out" && passed=1
    result $passed "a write that fails is reported"
    passed=0
    cmp -s "$scratch/kept.kdtr" "$scratch/before.kdtr" && passed=1
    result $passed "a write that fails leaves the old file"
    passed=1
    for left in "$scratch"/*.part "$scratch"/none*; do
        [ -e "$left" ] && passed=0
    done
    result $passed "nothing half-written is left"
    if [ -c /dev/full ]; then
        "$kdtr" help > /dev/full 2> "$err"
        code=$?
        passed=0
        [ "$code" -eq 2 ] && [ -s "$err" ] && passed=1
        result $passed "standard output that is full"
    else
        echo "skip P0-2 tool: standard output that is full: no /dev/full"
    fi
}

check_damage() {
    tiny=$data/tree-tiny.kdtr
    size=$(wc -c < "$tiny")
    for bytes in 0 1 63; do
        refuses_damage "cut to $bytes bytes" "preamble: .*(BUNDLE_TRUNCATED)" \
            truncate "$tiny" $bytes
    done
    for bytes in 64 200 $((size - 1)); do
        refuses_damage "cut to $bytes bytes" "file_bytes: .*(BUNDLE_TRUNCATED)" \
            truncate "$tiny" $bytes
    done
    refuses_damage "another magic" "magic: .*(BUNDLE_MAGIC)" flip "$tiny" 0
    refuses_damage "another version" "version: .*(BUNDLE_VERSION)" flip "$tiny" 8
    refuses_damage "an absurd tensor count" "tensor_count: .*(BUNDLE_HEADER)" flip "$tiny" 15
    refuses_damage "an absurd file size" "file_bytes: .*(BUNDLE_TRUNCATED)" flip "$tiny" 23
    refuses_damage "another checksum" "checksum: .*(BUNDLE_CHECKSUM)" flip "$tiny" 24
    refuses_damage "a corrupted table" "checksum: .*(BUNDLE_CHECKSUM)" flip "$tiny" 70
    refuses_damage "a corrupted element" "checksum: .*(BUNDLE_CHECKSUM)" flip "$tiny" $((size - 1))
    cp "$tiny" "$scratch/longer.kdtr"
    echo >> "$scratch/longer.kdtr"
    refuses "bytes at the end" "longer.kdtr: file_bytes: .*(BUNDLE_TRAILING)" \
        "$kdtr" verify "$scratch/longer.kdtr"
}

check_hostile() {
    tiny=$data/tree-tiny.kdtr # CSR, parents
    table=$data/table-1.kdtr  # row table
    packed=$data/masked-first.kdtr
    for value in nan inf -inf 0 -0.0 -1; do
        refuses_edit "scale $value" "scale: .*(BAD_SCALE)" "$tiny" scale 0 $value
    done
    refuses_edit "parents: a node is its own" "parents: .*(BAD_TREE)" "$tiny" parents 2 2
    refuses_edit "parents: forward" "parents: .*(BAD_TREE)" "$tiny" parents 1 3
    refuses_edit "parents: beyond the request" "parents: .*(BAD_TREE)" "$tiny" parents 1 100
    refuses_edit "parents: a second root" "parents: .*(BAD_TREE)" "$tiny" parents 2 -1
    refuses_edit "parents: the root has one" "parents: .*(BAD_TREE)" "$tiny" parents 0 0
    refuses_edit "parents: least integer" "parents: .*(BAD_TREE)" "$tiny" parents 3 -2147483648
    refuses_edit "slot -1" "slots: .*(BAD_SLOT)" "$tiny" slots 0 -1
    refuses_edit "slot beyond the pool" "slots: .*(BAD_SLOT)" "$tiny" slots 1 1000000
    refuses_edit "slot of the tree beyond the pool" "slots: .*(BAD_SLOT)" \
        "$tiny" slots 10 2147483647
    refuses_edit "table: slot beyond the pool" "row_table: .*(BAD_SLOT)" "$table" row_table 0 99999
    refuses_edit "table: slot -1" "row_table: .*(BAD_SLOT)" "$table" row_table 0 -1
    refuses_edit "prefix length -1" "prefix_len: .*(BAD_LENGTH)" "$table" prefix_len 1 -1
    refuses_edit "prefix length beyond the table" "prefix_len: .*(BAD_LENGTH)" \
        "$table" prefix_len 0 2000000000
    refuses_edit "page size 3" "page_size: .*(INVALID_ARGUMENT)" "$table" page_size 0 3
    refuses_edit "indptr: start" "indptr: .*(BAD_INDPTR)" "$tiny" indptr 0 1
    refuses_edit "indptr: beyond the list" "indptr: .*(BAD_INDPTR)" "$tiny" indptr 1 100000
    refuses_edit "indptr: negative" "indptr: .*(BAD_INDPTR)" "$tiny" indptr 1 -5
    refuses_edit "indptr: falls" "indptr: .*(BAD_INDPTR)" "$packed" indptr 1 1000
    refuses_edit "indptr: shorter than the tree" "indptr: .*(BAD_LENGTH)" "$tiny" indptr 1 2
    refuses_edit "node_indptr: start" "node_indptr: .*(BAD_INDPTR)" "$tiny" node_indptr 0 1
    refuses_edit "node_indptr: falls" "node_indptr: .*(BAD_INDPTR)" "$packed" node_indptr 2 1
    refuses_edit "node_indptr: beyond the rows" "node_indptr: .*(BAD_INDPTR)" \
        "$tiny" node_indptr 1 100000
    refuses_edit "node_indptr: negative" "node_indptr: .*(BAD_INDPTR)" "$tiny" node_indptr 1 -1
    refuses_edit "mask mode 4" "mask_mode: .*(INVALID_ARGUMENT)" "$tiny" mask_mode 0 4
    refuses_edit "mask without words" "mask_words: .*(BUNDLE_MISSING)" "$tiny" mask_mode 0 3
    refuses_edit "module: scale nan" "scale: .*(BAD_SCALE)" $data/module-deepseek-a.kdtr scale 0 nan
}

check_agreement() {
    for case in $("$kdtr" gen --list | cut -d ' ' -f 1); do
        if [ "$case" = tree-long ] && [ "${KDTR_TEST_SCALE:-full}" = small ]; then
            continue # 245 MB: the full scale has it
        fi
        file=$scratch/$case.kdtr
        succeeds "gen $case" "$kdtr" gen "$case" -o "$file"
        succeeds "info $case" "$kdtr" info "$file"
        succeeds "verify $case" "$kdtr" verify "$file" --threads 2
        shows "verify $case: o" '^  o \[.* 0 of [0-9]* elements differ in bits: ok$'
        shows "verify $case: lse" '^  lse \[.* 0 of [0-9]* elements differ in bits: ok$'
        [ "$case" = tree-long ] && rm -f "$file"
    done
    for letter in a b; do
        succeeds "verify module-deepseek-$letter" \
            "$kdtr" verify $data/module-deepseek-$letter.kdtr
        shows "verify module-deepseek-$letter: bound" \
            '^  module_output \[.*bound .* there, .* 0 of [0-9]* elements beyond: ok$'
    done
    succeeds "verify with a backend" "$kdtr" verify --backend reference $data/tree-tiny.kdtr
    shows "a tree is drawn" '^    .*`-- [0-9]'
    passed=1
    grep -q "$(printf '\033')" "$out" && passed=0
    result $passed "no colours but on a terminal"
    succeeds "verify masked-first" "$kdtr" verify $data/masked-first.kdtr
    shows "a mask that is no tree is said to be none" 'the mask is no tree'
    succeeds "verify nodes-1025" "$kdtr" verify "$scratch/nodes-1025.kdtr"
    shows "nodes that are not drawn are counted" '^    \.\.\. 1001 more nodes$'
}

# TEXT PATTERN SOURCE TENSOR INDEX VALUE: verify must find a mismatch in a bundle so edited.
differs_edit() {
    edited=$scratch/edited.kdtr
    rm -f "$edited"
    "$edit" "$3" "$edited" "$4" "$5" "$6" > "$out" 2> "$err" || {
        result 0 "$1: it cannot be made"
        return
    }
    differs "$1" "$2" "$kdtr" verify "$edited"
}

check_mismatch() {
    tiny=$data/tree-tiny.kdtr # 2 heads, latent 32
    module=$data/module-deepseek-a.kdtr
    differs_edit "last bit of an element of o" \
        '^  o \[.* at \[1,0,7\], 1 of 384 elements differ in bits: MISMATCH$' "$tiny" o 71 ^0
    differs_edit "o is NaN" \
        '^  o \[.*error inf at \[0,0,3\], 1 of .*: MISMATCH$' "$tiny" o 3 nan
    differs_edit "last bit of an element of lse" \
        '^  lse \[.* at \[2,1\], 1 of 12 elements differ in bits: MISMATCH$' "$tiny" lse 5 ^0
    differs_edit "lse is inf" '^  lse \[.*error inf at \[0,0\].*: MISMATCH$' "$tiny" lse 0 inf
    differs_edit "a bit of a query" ': MISMATCH$' "$tiny" q_latent 0 ^30
    differs_edit "another tree" ': MISMATCH$' "$tiny" parents 5 0
    differs_edit "module_output far off" \
        '^  module_output .* at \[0,0,2\].* 1 of .* beyond: MISMATCH$' \
        "$module" module_output 2 1000
    differs_edit "module_output is NaN" \
        '^  module_output .*error inf at \[0,0,2\].*: MISMATCH$' "$module" module_output 2 nan
    # Scores this large have an infinite bound, which must not let a NaN pass.
    "$edit" "$module" "$scratch/steep.kdtr" scale 0 10000
    differs_edit "NaN against an infinite bound" ': MISMATCH$' \
        "$scratch/steep.kdtr" module_output 2 nan
}

# Empty tensors share their address with the ones behind them, which must still be found. Products
# with zeros change no bit of a score, so without rope the result is that of zero rope queries.
check_no_rope() {
    "$edit" zero "$scratch/two-pools.kdtr" "$scratch/zero-rope.kdtr" q_rope &&
        "$edit" empty "$scratch/two-pools.kdtr" "$scratch/half.kdtr" q_rope &&
        "$edit" empty "$scratch/half.kdtr" "$scratch/no-rope.kdtr" kv_rope
    succeeds "info without rope" "$kdtr" info "$scratch/no-rope.kdtr"
    shows "info without rope: geometry" 'rope 0,'
    differs "verify with zero rope" ': MISMATCH$' "$kdtr" verify "$scratch/zero-rope.kdtr"
    sed 1d "$out" > "$scratch/expected"
    differs "verify without rope" ': MISMATCH$' "$kdtr" verify "$scratch/no-rope.kdtr"
    sed 1d "$out" > "$scratch/actual"
    passed=0
    cmp -s "$scratch/expected" "$scratch/actual" && passed=1
    result $passed "no rope is zero rope"
}

check_naive() {
    file=$data/tree-tiny.kdtr
    run "$kdtr" verify "$file" --backend naive
    if [ "$code" -eq 0 ]; then
        shows "naive agrees on the device" '^  o \[.* 0 of [0-9]* elements differ in bits: ok$'
        echo "skip P0-2 tool: naive without a device: there is a CUDA device"
        return
    fi
    if [ -e "$(dirname "$kdtr")/libkdtr_cuda.so.0" ]; then
        refuses "naive without a device" "tree-tiny.kdtr: .*no CUDA device.*(NO_DEVICE)" \
            "$kdtr" verify "$file" --backend naive
    else
        refuses "naive without the CUDA library" \
            "tree-tiny.kdtr: .*no CUDA library.*libkdtr_cuda.so.0.*(UNSUPPORTED)" \
            "$kdtr" verify "$file" --backend naive
    fi
}

check_help
check_usage
check_files
check_damage
check_hostile
check_agreement
check_mismatch
check_no_rope
check_naive
exit $failed
