#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes which nvcc to use to $1, only when that changes: "path version", or "none reason".
# KDTR_NVCC names another nvcc; KDTR_NVCC=none hides it. sm_120 needs nvcc 12.8.
set -u
out=$1
mkdir -p "$(dirname "$out")"

find_nvcc() {
    if [ "${KDTR_NVCC:-}" = none ]; then
        echo "none hidden by KDTR_NVCC=none"
        return
    fi
    nvcc=$(command -v "${KDTR_NVCC:-nvcc}" || echo "${KDTR_NVCC:-/usr/local/cuda/bin/nvcc}")
    if [ ! -x "$nvcc" ] && [ -n "${KDTR_NVCC:-}" ]; then
        echo "none KDTR_NVCC names no program: $nvcc"
        return
    fi
    if [ ! -x "$nvcc" ]; then
        echo "none no nvcc in PATH or /usr/local/cuda"
        return
    fi
    version=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\.[0-9]*\).*/\1/p')
    if ! echo "$version" | awk -F. '{exit !($1 > 12 || ($1 == 12 && $2 >= 8))}'; then
        echo "none $nvcc is version $version; sm_120 needs 12.8"
        return
    fi
    echo "$nvcc $version"
}

found=$(find_nvcc)
if [ ! -f "$out" ] || [ "$(cat "$out")" != "$found" ]; then
    echo "$found" > "$out"
fi
