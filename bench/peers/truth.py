# SPDX-License-Identifier: Apache-2.0
"""Float64 attention of a problem on its device, and errors against it."""

import math

import torch

from points import LATENT, ROW

# Largest relative L2 error of a bfloat16 output that counts as right, as bench has it.
RELATIVE_LIMIT = 4e-3
# Elements of a score matrix that are held at a time.
_ELEMENTS = 1 << 26
_MOST_KEYS = 1 << 16


class WrongOutput(Exception):
    """An output that differs from the truth. The text says how."""


class Truth:
    """The prefix is summed once; masks among the nodes are applied to that sum.

    `scale` multiplies scores. Works on whatever device the tensors are on, so that the self-test
    runs on a CPU."""

    def __init__(self, problem, scale):
        self.problem = problem
        self.scale = scale
        self.states = [self._prefix(b) for b in range(problem.point.batch)]

    def _queries(self, b):
        """[Q*H,576] float64 of request b."""
        nodes = self.problem.point.nodes
        return self.problem.q[b * nodes:(b + 1) * nodes].reshape(-1, ROW).double()

    def _prefix(self, b):
        """Maximum [R,1], sum [R,1] and weighted values [R,512] of the prefix, R = Q*H."""
        point = self.problem.point
        queries = self._queries(b)
        rows = queries.shape[0]
        top = queries.new_full((rows, 1), -math.inf)
        total = queries.new_zeros(rows, 1)
        values = queries.new_zeros(rows, LATENT)
        step = max(1, min(_ELEMENTS // rows, _MOST_KEYS))
        for start in range(0, point.prefix, step):
            stop = min(start + step, point.prefix)
            slots = self.problem.slots[b * point.prefix + start:b * point.prefix + stop]
            keys = self.problem.pool[slots.long()].double()
            top, total, values = _add(queries, keys, None, self.scale, (top, total, values))
        return top, total, values

    def of(self, visible):
        """(o [B*Q,H,512], lse [B*Q,H]) float64 with visible [B,Q,Q] among the nodes."""
        point = self.problem.point
        outputs, sums = [], []
        for b in range(point.batch):
            nodes = self.problem.tree_slots[b * point.nodes:(b + 1) * point.nodes]
            keys = self.problem.pool[nodes.long()].double()
            mask = visible[b].repeat_interleave(point.heads, 0)
            top, total, values = _add(self._queries(b), keys, mask, self.scale, self.states[b])
            outputs.append((values / total).view(point.nodes, point.heads, LATENT))
            sums.append((top + total.log()).view(point.nodes, point.heads))
        return torch.cat(outputs), torch.cat(sums)


def _add(queries, keys, mask, scale, state):
    """A softmax state extended by keys; mask [R,K] True where a row sees a key, None for all."""
    top, total, values = state
    scores = queries @ keys.T
    scores *= scale
    if mask is not None:
        scores.masked_fill_(~mask, -math.inf)
    new_top = torch.maximum(top, scores.amax(1, keepdim=True))
    scores -= new_top
    weights = scores.exp_()
    old = (top - new_top).exp()
    return (new_top, total * old + weights.sum(1, keepdim=True),
            values * old + weights @ keys[:, :LATENT])


def errors(output, truth):
    """(relative L2 error over all elements, largest absolute error). Raises WrongOutput where an
    element is not finite or the relative error exceeds the limit."""
    difference = output.double() - truth
    relative = float(difference.norm() / truth.norm())
    largest = float(difference.abs().amax())
    if not math.isfinite(relative) or not math.isfinite(largest):
        raise WrongOutput("an output is not finite, or was not written")
    if not relative <= RELATIVE_LIMIT:
        raise WrongOutput(f"relative error {relative:.3e}, largest error {largest:.3e}")
    return relative, largest
