# SPDX-License-Identifier: Apache-2.0
"""Compiles FlashInfer's two MLA modules for bfloat16, 512 + 64, from the files of its wheel, on a
machine without a GPU: build_flashinfer.py SITE. Prints a line "name path" for each library.

The objects use tvm-ffi's C ABI, so they fit any torch and any Python. The environment sets target
(FLASHINFER_CUDA_ARCH_LIST) and folder (FLASHINFER_WORKSPACE_BASE)."""

import os
import sys
import types

import torch


def main(site):
    """Builds both."""
    package = types.ModuleType("flashinfer")
    package.__path__ = [os.path.join(site, "flashinfer")]
    sys.modules["flashinfer"] = package
    from flashinfer.jit import gen_batch_mla_module
    for backend in ("fa2", "fa3"):
        spec = gen_batch_mla_module(backend, torch.bfloat16, torch.bfloat16, torch.bfloat16,
                                    torch.int32, 512, 64, False)
        spec.build()
        print(spec.name, spec.jit_library_path)


if __name__ == "__main__":
    main(sys.argv[1])
