# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's MLA wrapper, backends fa2 and fa3, from the files of its wheel.

The package's own __init__ imports everything that it has; the wrapper needs a twentieth of it. So
the folders are made known as packages and the wrapper is imported alone. Its kernels are compiled
beforehand (make_kit.sh) and stand where the package looks for prebuilt ones."""

import os
import sys
import tempfile
import types

import torch

from points import LATENT, ROPE, InputError
from problem import SCALE

_WORKSPACE_BYTES = 128 << 20  # what its documentation asks for


def load(site):
    """The wrapper class of `site`/flashinfer. Compiles nothing: a missing kernel is an error."""
    root = os.path.join(site, "flashinfer")
    if not os.path.isdir(os.path.join(root, "mla")):
        raise InputError(f"no flashinfer with an MLA wrapper in {site}")
    os.environ.setdefault("FLASHINFER_WORKSPACE_BASE", tempfile.mkdtemp(prefix="flashinfer-"))
    os.environ["FLASHINFER_DISABLE_JIT"] = "1"
    for name in ("flashinfer", "flashinfer.mla"):
        package = types.ModuleType(name)
        package.__path__ = [os.path.join(site, *name.split("."))]
        sys.modules[name] = package
    from flashinfer.mla._batch_mla._wrapper import BatchMLAPagedAttentionWrapper
    return BatchMLAPagedAttentionWrapper


class Verify:
    """A planned call: page size 1, causal among the nodes. Planning is outside of what is timed."""

    def __init__(self, wrapper, problem, backend):
        from flashinfer.mla._batch_mla._contracts import MLAPlanMetadata
        point = problem.point
        each = point.prefix + point.nodes
        self.problem = problem
        self.o = problem.output()
        self.workspace = torch.empty(_WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")
        self.wrapper = wrapper(self.workspace, backend=backend)
        self.slots = problem.all_slots()
        lengths = torch.full((point.batch,), each, dtype=torch.int32, device="cuda")
        metadata = MLAPlanMetadata.csr(qo_indptr=problem.indptr(point.nodes),
                                       kv_indptr=problem.indptr(each), kv_indices=self.slots,
                                       kv_len_arr=lengths)
        self.wrapper.plan(metadata=metadata, num_heads=point.heads, head_dim_ckv=LATENT,
                          head_dim_kpe=ROPE, page_size=1, causal=True, sm_scale=SCALE,
                          q_data_type=torch.bfloat16, kv_data_type=torch.bfloat16,
                          query_layout="split", kv_cache_layout="split")
        self.query = (problem.q[..., :LATENT], problem.q[..., LATENT:])
        pages = problem.pool.unsqueeze(1)
        self.cache = (pages[..., :LATENT], pages[..., LATENT:])

    def __call__(self):
        """Enqueues on torch's current stream."""
        self.wrapper.run(query=self.query, kv_cache=self.cache, out=self.o)
