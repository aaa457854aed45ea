#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Collects what a machine with a GPU needs beside torch and triton: make_kit.sh KIT [WORK]
#
# KIT gets site/ (the peers' files from their wheels, FlashInfer's kernels compiled for sm_90a),
# peers/ (these programs), and limits.txt; kdtr's libraries and kit.txt come from `ninja gpu-kit`.
# WORK (default KIT.work) keeps wheels, a virtual environment with torch, and objects. Needs python3
# with venv, nvcc, a package index, and about 10 GB. KDTR_PEERS_PYTHON_VERSION is the target's
# Python (3.12), KDTR_PEERS_ARCH the target's architecture for FlashInfer (9.0a).
set -eu
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: make_kit.sh KIT [WORK]" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" "${2:-$1.work}"
kit=$(cd "$1" && pwd)
work=$(cd "${2:-$1.work}" && pwd)
target=${KDTR_PEERS_PYTHON_VERSION:-3.12}
arch=${KDTR_PEERS_ARCH:-9.0a}

version() {
    sed -n "s/^$1 //p" "$here/versions.txt"
}

# Wheels for the target, unpacked beside each other.
platforms=$(for glibc in 17 24 28 34; do printf ' --platform manylinux_2_%s_x86_64' "$glibc"; done)
if [ ! -d "$work/site/flashinfer" ]; then
    rm -rf "$work/site" "$work/wheels"
    mkdir -p "$work/site"
    while read -r name number; do
        # The list of platforms is meant to be split.
        # shellcheck disable=SC2086
        python3 -m pip download -q --no-deps --only-binary=:all: --python-version "$target" \
            --implementation cp --platform manylinux2014_x86_64 $platforms \
            -d "$work/wheels" "$name==$number"
    done < "$here/versions.txt"
    for wheel in "$work"/wheels/*.whl; do
        python3 -m zipfile -e "$wheel" "$work/site"
    done
fi

# FlashInfer's build needs torch, tvm-ffi and a few modules, for the Python of this machine.
if [ ! -x "$work/venv/bin/ninja" ]; then
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install -q torch==2.11.0 "apache-tvm-ffi==$(version apache-tvm-ffi)" \
        filelock jinja2 packaging requests tqdm numpy ninja
fi
PATH=$work/venv/bin:$PATH FLASHINFER_CUDA_ARCH_LIST=$arch FLASHINFER_WORKSPACE_BASE=$work \
    MAX_JOBS="${MAX_JOBS:-2}" "$work/venv/bin/python" "$here/build_flashinfer.py" "$work/site" \
    > "$work/modules.txt"

# Of FlashInfer what its MLA wrapper imports, the sources that it reads to name a module, and the
# compiled modules where prebuilt ones are looked for.
rm -rf "$kit/site" "$kit/peers"
mkdir -p "$kit/site" "$kit/peers" "$kit/lib"
(cd "$work/site" && find flashinfer/*.py flashinfer/jit flashinfer/mla flashinfer/trace tvm_ffi \
    apache_tvm_ffi-*.dist-info flashinfer_python-*.dist-info/METADATA \
    sglang-*.dist-info/METADATA sglang/kernels/ops/attention/score_mod.py \
    sglang/kernels/ops/attention/metadata.py sglang/kernels/ops/attention/decode_attention.py \
    sglang/kernels/ops/attention/extend_attention.py \
    \( -name include -o -name __pycache__ \) -prune -o -type f ! -name '*.a' -print |
    tar cf - -T -) | (cd "$kit/site" && tar xf -)
mkdir -p "$kit/site/flashinfer/data/csrc"
cp "$work"/site/flashinfer/data/csrc/batch_mla* "$kit/site/flashinfer/data/csrc/"
while read -r name path; do
    mkdir -p "$kit/site/flashinfer/data/aot/$name"
    cp "$path" "$kit/site/flashinfer/data/aot/$name/$name.so"
done < "$work/modules.txt"
cp "$here"/*.py "$here/versions.txt" "$kit/peers/"
cp "$here/../limits.txt" "$kit/"
du -sm "$kit" | sed 's/[[:space:]].*/ MiB in the kit/'
