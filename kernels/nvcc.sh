#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles and links for CUDA with the nvcc of out/nvcc.txt. Without one, or from a skipped object,
# the output is a file that starts with SKIP and says why.
#
#   nvcc.sh compile OUT SOURCE [FLAGS...]   object; FLAGS name the targets
#   nvcc.sh report  OUT SOURCE [FLAGS...]   what ptxas says of registers, spills and shared memory
#   nvcc.sh ptx     OUT SOURCE [FLAGS...]   PTX for compute_120
#   nvcc.sh shared  OUT NAME OBJECTS...     out/libNAME.so.0, kdtr_cuda with its link or kdtr_bench;
#                                           OUT says how it went
#   nvcc.sh program OUT INPUTS...           program; CUDA runtime and Check linked statically
set -eu
mode=$1
out=$2
shift 2
name=
if [ "$mode" = shared ]; then
    name=$1
    shift
fi
read -r nvcc detail < out/nvcc.txt
mkdir -p "$(dirname "$out")"

skip() {
    echo "SKIP $1" > "$out"
    [ "$mode" != compile ] || echo "$out:" > "$out.d"
    if [ "$mode" = shared ]; then
        rm -f "out/lib$name.so.0" "out/lib$name.so"
    fi
    exit 0
}

[ "$nvcc" != none ] || skip "$detail"
for input in "$@"; do
    case $input in
    *.o) if [ "$(head -c 4 "$input")" = SKIP ]; then skip "$(sed 's/^SKIP //' "$input")"; fi ;;
    esac
done

# Targets, what is an error of ptxas, and -fmad come with the flags: kernels/kernels.ninja sets them
# for each source.
numerics="-ftz=false -prec-div=true"
host="-Xcompiler=-Wall,-Wextra,-Wno-unused-function,-ffp-contract=off,-fPIC,-fvisibility=hidden"

case $mode in
compile)
    case $1 in *.cu) language="-std=c++17 -Werror=all-warnings" ;; *) language= ;; esac
    # shellcheck disable=SC2086 # the flag lists are meant to split
    "$nvcc" $language -O3 $numerics $host "$@" -MMD -MF "$out.d" -c -o "$out"
    ;;
report)
    # shellcheck disable=SC2086
    "$nvcc" -std=c++17 -O3 $numerics "$@" -Xptxas=-v -c -o "$out.o" > "$out.part" 2>&1 || {
        cat "$out.part"
        exit 1
    }
    rm -f "$out.o"
    mv "$out.part" "$out"
    ;;
ptx)
    # shellcheck disable=SC2086
    "$nvcc" -std=c++17 -O3 $numerics -arch=compute_120 "$@" -ptx -o "$out"
    ;;
shared)
    case $name in
    kdtr_cuda) map=capi/libkdtr_cuda.map needs=-lkdtr ;;
    *) map=bench/libkdtr_bench.map needs="-lkdtr_cuda -lkdtr" ;;
    esac
    # shellcheck disable=SC2086 # libraries
    "$nvcc" -shared -cudart static -Xcompiler=-static-libgcc,-static-libstdc++ \
        "-Xlinker=-soname,lib$name.so.0" \
        "-Xlinker=--version-script=$map" -Xlinker=--exclude-libs,ALL -Xlinker=--no-undefined \
        -Xlinker='-rpath=$ORIGIN' "$@" -Lout $needs -lm -lpthread -o "out/lib$name.so.0"
    [ "$name" != kdtr_cuda ] || ln -sf libkdtr_cuda.so.0 out/libkdtr_cuda.so
    echo "built with nvcc $detail for sm_90, sm_120 and compute_120" > "$out"
    ;;
program)
    "$nvcc" -cudart static -Xcompiler=-static-libgcc,-static-libstdc++ "$@" -o "$out" \
        -l:libcheck_pic.a -l:libsubunit.a -lm -lrt -lpthread
    ;;
esac
