#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The exported symbols of the libraries against the public headers, what they need, and their
# sonames. Run from the repository root:
#
#   sh tests/scripts/symbols.sh OUT_DIR
#
# One line a check: ok, not ok or skip. Exit 1 if any is not ok.
set -u
export LC_ALL=C
[ $# -eq 1 ] || {
    echo "usage: sh tests/scripts/symbols.sh OUT_DIR" >&2
    exit 2
}
out=$1
failed=0
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

# report CONDITION TEXT: CONDITION is 0 for success.
report() {
    if [ "$1" -eq 0 ]; then
        echo "ok symbols: $2"
    else
        echo "not ok symbols: $2"
        failed=1
    fi
}

# declared HEADERS...: the functions that are marked KDTR_API, one a line.
declared() {
    cat "$@" | tr '\n' ' ' | sed 's/KDTR_API /\n&/g' |
        sed -n 's/^KDTR_API [^(]*[ *]\(kdtr_[a-z0-9_]*\)(.*/\1/p' | sort -u
}

# exported LIBRARY: its dynamic symbols, without the names of version nodes.
exported() {
    nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u
}

# header LIBRARY TAG: values of a tag of the dynamic section.
header() {
    objdump -p "$1" | awk -v tag="$2" '$1 == tag { print $2 }' | sort
}

# check LIBRARY SONAME NEEDED HEADERS...: NEEDED is a pattern of every entry.
check() {
    library=$1
    soname=$2
    needed=$3
    shift 3
    name=$(basename "$library")
    declared "$@" >"$work/declared"
    exported "$library" >"$work/exported"
    [ -s "$work/declared" ] && cmp -s "$work/declared" "$work/exported"
    report $? "$name exports the functions of its headers"
    comm -23 "$work/declared" "$work/exported" | sed 's/^/    not exported: /'
    comm -13 "$work/declared" "$work/exported" | sed 's/^/    not declared: /'
    # Each declaration is marked, and nothing else is.
    cat "$@" | grep -c '^KDTR_API ' >"$work/marks"
    [ "$(cat "$work/marks")" -eq "$(awk 'END { print NR }' "$work/declared")" ]
    report $? "$name: every KDTR_API in its headers marks one function"
    header "$library" NEEDED >"$work/needed"
    [ -s "$work/needed" ] && ! grep -v -E "^($needed)\$" "$work/needed" >"$work/extra"
    report $? "$name needs $(tr '\n' ' ' <"$work/needed" | sed 's/ $//')"
    [ "$(header "$library" SONAME)" = "$soname" ]
    report $? "$name has the soname $soname"
    ! objdump -p "$library" | grep -q TEXTREL
    report $? "$name has no text relocations"
    nodes=$(nm -D --defined-only "$library" | awk '$2 == "A" { n++ } END { print n + 0 }')
    [ "$nodes" -eq 1 ]
    report $? "$name has one version node"
}

library=$out/libkdtr.so.0
if [ ! -e "$library" ]; then
    echo "not ok symbols: $library is not there"
    exit 1
fi
loader='ld-linux[-a-z0-9_]*\.so\.[0-9]'
check "$library" libkdtr.so.0 "libc\.so\.6|libm\.so\.6|$loader" capi/kdtr.h capi/kdtr_bundle.h \
    capi/kdtr_step.h
if [ -e "$out/libkdtr_cuda.so.0" ]; then
    # The CUDA runtime inside needs more of the system, but nothing of CUDA.
    system="libc\.so\.6|libm\.so\.6|libdl\.so\.2|librt\.so\.1|libpthread\.so\.0"
    system="$system|libstdc\+\+\.so\.6|libgcc_s\.so\.1|$loader"
    check "$out/libkdtr_cuda.so.0" libkdtr_cuda.so.0 "libkdtr\.so\.0|$system" capi/kdtr_cuda.h
    check "$out/libkdtr_bench.so.0" libkdtr_bench.so.0 \
        "libkdtr\.so\.0|libkdtr_cuda\.so\.0|$system" bench/kdtr_bench.h
    [ "$(cat "$work/exported")" = kdtr_bench_main ]
    report $? "libkdtr_bench.so.0 exports kdtr_bench_main alone"
    # Nothing that is shipped for others needs it.
    for file in libkdtr.so.0 libkdtr_cuda.so.0 kdtr; do
        [ -e "$out/$file" ] && ! header "$out/$file" NEEDED | grep -q libkdtr_bench
        report $? "$file does not need libkdtr_bench"
    done
else
    echo "skip symbols: libkdtr_cuda.so.0: it was not built"
    echo "skip symbols: libkdtr_bench.so.0: it was not built"
fi
exit $failed
