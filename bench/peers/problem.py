# SPDX-License-Identifier: Apache-2.0
"""Inputs of a call: the same tensors for every implementation."""

import random

import torch

import trees
from points import LATENT, ROW

SCALE = 192.0**-0.5  # 1 / sqrt(qk_nope + qk_rope) of these models


class Problem:
    """One point with fresh data.

    Shapes use B, H, Q, N of the point, S = 2 * B * (N + Q) slots:
    q [B*Q,H,576] and pool [S,576] normal bfloat16; slots [B*N] and tree_slots [B*Q] int32, a random
    permutation of the pool's rows or consecutive; per request a random tree as parents,
    visible [B,Q,Q] bool, words [B*Q,ceil(Q/32)] int32; causal [Q,Q] bool."""

    def __init__(self, point, layout, seed, pool=None):
        self.point = point
        self.layout = layout
        generator = torch.Generator(device="cuda").manual_seed(seed)
        rows = point.batch * point.nodes
        each = point.prefix + point.nodes
        total = 2 * point.batch * each
        self.q = torch.randn(rows, point.heads, ROW, generator=generator, device="cuda",
                             dtype=torch.bfloat16)
        self.pool = pool if pool is not None else make_pool(total, generator)
        order = (torch.randperm(total, generator=generator, device="cuda", dtype=torch.int32)
                 if layout == "random"
                 else torch.arange(total, device="cuda", dtype=torch.int32))
        order = order[:point.batch * each].view(point.batch, each)
        self.slots = order[:, :point.prefix].reshape(-1).contiguous()
        self.tree_slots = order[:, point.prefix:].reshape(-1).contiguous()
        source = random.Random(seed)
        forest = [trees.random_parents(point.nodes, source) for _ in range(point.batch)]
        seen = [trees.visible_nodes(parents) for parents in forest]
        self.visible = torch.tensor(seen, dtype=torch.bool, device="cuda")
        self.causal = torch.tensor(trees.causal_nodes(point.nodes), dtype=torch.bool,
                                   device="cuda").expand(point.batch, -1, -1)
        words = [line for one in seen for line in trees.packed_words(one)]
        self.words = torch.tensor(words, dtype=torch.int32, device="cuda")

    def indptr(self, each, dtype=torch.int32):
        """[B+1] starts of requests that have `each` entries."""
        return torch.arange(self.point.batch + 1, device="cuda", dtype=dtype) * each

    def all_slots(self):
        """[B*(N+Q)] int32, each request's prefix followed by its nodes."""
        point = self.point
        return torch.cat((self.slots.view(point.batch, point.prefix),
                          self.tree_slots.view(point.batch, point.nodes)), 1).reshape(-1)

    def output(self):
        """A poisoned output [B*Q,H,512] bfloat16."""
        rows = self.point.batch * self.point.nodes
        return torch.full((rows, self.point.heads, LATENT), float("nan"), device="cuda",
                          dtype=torch.bfloat16)


def make_pool(rows, generator):
    """[rows,576] normal bfloat16 on the device."""
    return torch.randn(rows, ROW, generator=generator, device="cuda", dtype=torch.bfloat16)
