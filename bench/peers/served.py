# SPDX-License-Identifier: Apache-2.0
"""Rows of op served: one captured graph of the verify calls of all layers of a model."""

import copy

import torch

import kdtr
import sglang_triton
import timing
from measure import describe, free, point_fields
from points import Point
from problem import SCALE, Problem, make_pool
from truth import Truth, errors

LAYERS = 61  # of DeepSeek V3 and Kimi K2
HEADS = 8  # of 64 on one of eight GPUs
NODES = (8, 16, 64)
PREFIXES = (4096, 16384, 32768, 65536, 131072, 200000)
_SHORT_US = 50000.0  # of a graph that is replayed often
_WARM_UP = 10


def make_layers(point, pools, seed):
    """Problems of all layers on the given pools, of which the first 2 * (N + Q) rows are used:
    queries and cache of its own for each, slots and tree shared."""
    rows = 2 * (point.prefix + point.nodes)
    first = Problem(point, "random", seed, pools[0][:rows])
    generator = torch.Generator(device="cuda").manual_seed(seed + 1)
    layers = []
    for pool in pools:
        layer = copy.copy(first)
        layer.q = torch.randn(first.q.shape, generator=generator, device="cuda",
                              dtype=torch.bfloat16)
        layer.pool = pool[:rows]
        layers.append(layer)
    return layers


def _calls(run, name, layers):
    """The call of each layer."""
    if name == "kdtr_flash":
        calls = [kdtr.Verify(run.backends.library, layers[0], "flash")]
        return calls + [kdtr.Verify(run.backends.library, layer, "flash",
                                    workspace=calls[0].workspace) for layer in layers[1:]]
    first = sglang_triton.Extend(run.backends.sglang, layers[0])
    return [first] + [sglang_triton.Extend(run.backends.sglang, layer, first)
                      for layer in layers[1:]]


def _capture(calls):
    """A graph of all calls. They have run before: kernels are loaded, and under capture none may
    be."""
    for call in calls:
        call()
    torch.cuda.synchronize()
    for call in calls:
        call.o.fill_(float("nan"))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    return graph


def _one(run, name, layers, truths, accepted):
    """The row of one implementation."""
    calls = _calls(run, name, layers)
    graph = _capture(calls)
    graph.replay()
    torch.cuda.synchronize()
    checks = {index: errors(calls[index].o, truth)[0] for index, truth in truths.items()}
    # The caches of all layers exceed the L2, so each replay finds it cold: no flush. Short graphs
    # are replayed until the card's power and clock have settled.
    first, _ = run.timer.sample(graph.replay, timing.SPIN_US, flush=False)
    short = first < _SHORT_US
    time = run.timer.measure(graph.replay, run.samples or (25 if short else 0), flush=False,
                             warm_up=_WARM_UP if short else 0)
    point = layers[0].point
    return {"op": "served", "implementation": name, "layers": len(layers), **point_fields(point),
            "mask": "tree", "layout": "random", "median_us": time.median, "p25_us": time.p25,
            "p75_us": time.p75, "samples": time.count, "accepted_length": float(accepted),
            "tokens_per_s": accepted / time.median * 1e6,
            "relative_error": max(checks.values()),
            "note": "each layer its own cache, slots and tree shared; layers "
                    + " and ".join(str(index) for index in checks) + " checked against float64"}


def served(run, nodes, prefixes, accepted):
    """All rows. The pools of the longest prefix serve the others too."""
    names = ["kdtr_flash"] + (["sglang_triton_extend"] if run.backends.sglang is not None else [])
    generator = torch.Generator(device="cuda").manual_seed(7)
    most = 2 * (max(prefixes) + max(nodes))
    pools = [make_pool(most, generator) for _ in range(LAYERS)]
    for prefix in sorted(prefixes):
        for count in nodes:
            point = Point(1, HEADS, count, prefix)
            layers = make_layers(point, pools, 11 * prefix + count)
            truths = {index: Truth(layers[index], SCALE).of(layers[index].visible)[0]
                      for index in (0, LAYERS - 1)}
            for name in names:
                try:
                    run.rows.append(_one(run, name, layers, truths, accepted))
                except Exception as cause:  # a peer may raise anything; the row is missing
                    run.fail(f"served {name} at {tuple(point)}", f"{type(cause).__name__}: {cause}")
                    continue
                row = run.rows[-1]
                print(describe(row), f" {row['tokens_per_s']:.1f} tokens/s", flush=True)
            del layers, truths
            free()
