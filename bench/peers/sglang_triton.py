# SPDX-License-Identifier: Apache-2.0
"""SGLang's Triton attention from the files of its wheel, loaded alone.

The package needs its server's dependencies to import. The kernel files need three names of it,
which are given here: the kernels and their launch code are the wheel's, unchanged."""

import importlib
import os
import sys
import types

import torch

from points import LATENT, InputError
from problem import SCALE

_FILES = ("score_mod", "metadata", "decode_attention", "extend_attention")
_FOLDER = ("sglang", "kernels", "ops", "attention")
# _mla_decode_kv_splits_cap of its Triton backend: the power of two at or above the number of SMs.
_LEAST_SPLITS = 8


class _Unset:
    """Its environment switches, none of them set."""

    def __getattr__(self, name):
        return self

    def get(self):
        """No switch is on."""
        return False


def load(site):
    """Modules of the wheel by name: decode_attention, extend_attention, metadata."""
    folder = os.path.join(site, *_FOLDER)
    missing = [name for name in _FILES if not os.path.isfile(os.path.join(folder, name + ".py"))]
    if missing:
        raise InputError(f"no {missing[0]}.py of sglang in {folder}")
    for count in range(1, len(_FOLDER) + 1):
        package = types.ModuleType(".".join(_FOLDER[:count]))
        package.__path__ = [os.path.join(site, *_FOLDER[:count])]
        sys.modules[package.__name__] = package
    server = types.ModuleType("sglang.srt")
    server.__path__ = []
    environ = types.ModuleType("sglang.srt.environ")
    environ.envs = _Unset()
    utils = types.ModuleType("sglang.srt.utils")
    utils.is_cuda = lambda: True
    utils.is_hip = utils.is_gfx95_supported = utils.is_gfx1250_supported = lambda: False
    utils.get_device_core_count = (
        lambda index=0: torch.cuda.get_device_properties(index).multi_processor_count)
    for module in (server, environ, utils):
        sys.modules[module.__name__] = module
    return {name: importlib.import_module(".".join(_FOLDER + (name,))) for name in _FILES}


class Extend:
    """extend_attention_fwd as its Triton backend calls it for a verify with a tree: prefix by
    slots, nodes' keys and values as tensors of their own (gathered outside of what is timed: a
    server has them from its projections), one byte of mask for each node and key."""

    def __init__(self, modules, problem, shared=None):
        """`shared`, a call of another layer with the same slots and trees, lends its metadata."""
        point = problem.point
        self.function = modules["extend_attention"].extend_attention_fwd
        self.o = problem.output()
        nodes = problem.pool[problem.tree_slots.long()].unsqueeze(1)
        values = nodes[..., :LATENT].contiguous()
        pool = problem.pool.unsqueeze(1)
        each = point.prefix + point.nodes
        if shared is not None:
            metadata = shared.arguments[6:]
        else:
            mask = torch.ones(point.batch, point.nodes, each, dtype=torch.bool, device="cuda")
            mask[:, :, point.prefix:] = problem.visible
            metadata = (problem.indptr(point.nodes), problem.indptr(point.prefix),
                        problem.slots.long(), mask.view(-1), True,
                        problem.indptr(point.nodes * each, torch.int64), point.nodes, 1.0, 1.0,
                        SCALE)
        self.arguments = (problem.q, nodes, values, self.o, pool, pool[..., :LATENT]) + metadata

    def __call__(self):
        """Enqueues on torch's current stream."""
        self.function(*self.arguments)


class Decode:
    """decode_attention_fwd as its Triton backend calls it for MLA: one token a request, two
    kernels with programmatic dependent launch. splits None: its own rule and cap."""

    def __init__(self, modules, problem, splits=None):
        point = problem.point
        self.function = modules["decode_attention"].decode_attention_fwd
        self.o = problem.output()
        each = point.prefix + 1
        sms = torch.cuda.get_device_properties(0).multi_processor_count
        most = splits or max(_LEAST_SPLITS, 1 << (sms - 1).bit_length())
        counts = torch.full((point.batch,), most, dtype=torch.int32, device="cuda")
        if splits is None:
            lengths = torch.full((point.batch,), each, dtype=torch.int64, device="cuda")
            modules["metadata"].get_num_kv_splits_triton[(1,)](
                counts, lengths, point.batch, 1, point.heads, 1, most, sms, MAX_NUM_SEQ=256)
        self.splits = int(counts[0])
        shape = (point.batch, point.heads, most)
        logits = torch.empty(*shape, LATENT, dtype=torch.float32, device="cuda")
        lse = torch.empty(shape, dtype=torch.float32, device="cuda")
        pool = problem.pool.unsqueeze(1)
        self.arguments = (problem.q, pool, pool[..., :LATENT], self.o, problem.indptr(each),
                          problem.all_slots().long(), logits, lse, counts, most, SCALE, 1.0, 1.0)

    def __call__(self):
        """Enqueues on torch's current stream."""
        self.function(*self.arguments, has_mla=True, use_pdl=True)
