# SPDX-License-Identifier: Apache-2.0
"""Captures bundles from the DeepSeek-V3 attention of the transformers package.

    python capture_deepseek.py          writes ../data/module-deepseek-*.kdtr
    python capture_deepseek.py --check  compares with the files there instead

README.md beside this file says what is captured, with which versions, and what was measured.
"""

import os

# One code path on every x86-64 processor: set before torch loads.
os.environ["ATEN_CPU_CAPABILITY"] = "default"
os.environ["MKL_CBWR"] = "COMPATIBLE"
os.environ["HF_HUB_OFFLINE"] = "1"

import hashlib
import platform
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import transformers
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as modeling
from transformers.models.deepseek_v3.configuration_deepseek_v3 import DeepseekV3Config

from bundle_writer import Tensor, build, parse

LATENT = 512
ROPE = 64
HIDDEN = 256
SPARE_SLOTS = 7
QUERY_GAIN = 1.6
KV_B_GAIN = 1.5
MAX_ERROR = 2e-6  # of the absorbed formula, relative to max|module_output|
DATA = Path(__file__).resolve().parent.parent / "data"


@dataclass(frozen=True)
class Case:
    """One bundle."""

    name: str
    seed: int
    heads: int
    nope: int
    value: int
    q_lora_rank: int | None
    prefix: int
    parents: tuple[int, ...]
    rope_parameters: dict
    index_dtype: str
    mask_mode: int
    one_pool: bool
    own_tree_slots: bool

    @property
    def nodes(self) -> int:
        """Nodes of the tree, root included."""
        return len(self.parents)

    @property
    def tokens(self) -> int:
        """Prefix tokens, then tree tokens."""
        return self.prefix + self.nodes


CASES = (
    Case(
        name="module-deepseek-a", seed=20250117, heads=4, nope=16, value=24, q_lora_rank=48,
        prefix=37, parents=(-1, 0, 1, 0, 1, 2, 3, 2, 0, 6, 5, 4),
        rope_parameters={
            "rope_type": "yarn", "rope_theta": 10000.0, "factor": 40.0,
            "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1,
            "mscale": 1.0, "mscale_all_dim": 1.0,
        },
        index_dtype="i32", mask_mode=2, one_pool=False, own_tree_slots=False,
    ),
    Case(
        name="module-deepseek-b", seed=20250212, heads=3, nope=32, value=16, q_lora_rank=None,
        prefix=70,
        parents=(-1, 0, 1, 2, 0, 4, 1, 3, 5, 0, 7, 4, 2, 9, 10, 8, 13, 0, 12, 16, 6),
        rope_parameters={
            "rope_type": "yarn", "rope_theta": 50000.0, "factor": 64.0,
            "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1,
            "mscale": 1.0, "mscale_all_dim": 0.8,
        },
        index_dtype="i64", mask_mode=3, one_pool=True, own_tree_slots=True,
    ),
)


def path_to(parents: tuple[int, ...], node: int) -> list[int]:
    """Nodes from the root to this one."""
    path = []
    while node >= 0:
        path.append(node)
        node = parents[node]
    return path[::-1]


def tree_visibility(parents: tuple[int, ...]) -> np.ndarray:
    """[R,R]: row i, column j true where node i sees node j: its ancestors and itself."""
    visible = np.zeros((len(parents), len(parents)), bool)
    for node, parent in enumerate(parents):
        assert parent < node and (parent >= 0) == (node > 0)
        visible[node, path_to(parents, node)] = True
    return visible


def additive_mask(case: Case) -> torch.Tensor:
    """The module's 4D mask [1,1,tokens,tokens]: 0 where visible, the lowest number elsewhere."""
    visible = np.tril(np.ones((case.tokens, case.tokens), bool))
    visible[case.prefix:, case.prefix:] = tree_visibility(case.parents)
    mask = torch.zeros(case.tokens, case.tokens, dtype=torch.float64)
    mask.masked_fill_(torch.from_numpy(~visible), torch.finfo(torch.float64).min)
    return mask[None, None]


def position_ids(case: Case) -> torch.Tensor:
    """[1,tokens]: 0, 1, ... for the prefix, then prefix + depth for each node."""
    depths = [len(path_to(case.parents, node)) - 1 for node in range(case.nodes)]
    positions = list(range(case.prefix)) + [case.prefix + depth for depth in depths]
    return torch.tensor(positions)[None]


def rounded(x: torch.Tensor) -> torch.Tensor:
    """The nearest float32 numbers, as float64."""
    return x.float().double()


def build_module(case: Case, rng: np.random.Generator):
    """The attention module in float64 with seeded float32 weights, and its rotary embedding."""
    rope = case.rope_parameters
    config = DeepseekV3Config(
        hidden_size=HIDDEN, num_attention_heads=case.heads, num_key_value_heads=case.heads,
        kv_lora_rank=LATENT, q_lora_rank=case.q_lora_rank, qk_rope_head_dim=ROPE,
        qk_nope_head_dim=case.nope, v_head_dim=case.value, rope_parameters=dict(rope),
        max_position_embeddings=int(rope["factor"]) * rope["original_max_position_embeddings"],
        attn_implementation="eager",
    )
    module = modeling.DeepseekV3Attention(config, layer_idx=0).double().eval()
    for name, parameter in module.named_parameters():
        values = rng.standard_normal(tuple(parameter.shape), np.float32)
        if "layernorm" in name:
            values = 1 + values / 8
        else:
            values = values / np.sqrt(np.float32(parameter.shape[1]))
        if name in ("q_proj.weight", "q_b_proj.weight"):
            values = values * np.float32(QUERY_GAIN)
        if name == "kv_b_proj.weight":
            values = values * np.float32(KV_B_GAIN)
        assert values.dtype == np.float32
        parameter.data.copy_(torch.from_numpy(values))
    return module, modeling.DeepseekV3RotaryEmbedding(config)


@contextmanager
def recording(module):
    """Rounds what a bundle stores to float32 inside the module, and records what it goes on with.

    Rounded: the query projection's output, kv_a_layernorm's output, both results of RoPE.
    """
    record = {}
    apply_rope = modeling.apply_rotary_pos_emb_interleave
    eager = modeling.eager_attention_forward
    expand_kv = module.expand_kv

    def rope(*args, **kwargs):
        q_rope, k_rope = apply_rope(*args, **kwargs)
        return rounded(q_rope), rounded(k_rope)

    def expand(latent, k_rope):
        record["latent"], record["k_rope"] = latent[0, 0], k_rope[0, 0]
        return expand_kv(latent, k_rope)

    def attend(this, query, *args, scaling, **kwargs):
        record["query"], record["scaling"] = query[0].transpose(0, 1), scaling
        return eager(this, query, *args, scaling=scaling, **kwargs)

    def before_o_proj(_, args):
        record["output"] = args[0][0].unflatten(-1, (module.num_heads, -1))

    query_projection = module.q_proj if module.q_lora_rank is None else module.q_b_proj
    hooks = [
        query_projection.register_forward_hook(lambda _, args, output: rounded(output)),
        module.kv_a_layernorm.register_forward_hook(lambda _, args, output: rounded(output)),
        module.o_proj.register_forward_pre_hook(before_o_proj),
    ]
    modeling.apply_rotary_pos_emb_interleave = rope
    modeling.eager_attention_forward = attend
    module.expand_kv = expand
    try:
        yield record
    finally:
        modeling.apply_rotary_pos_emb_interleave = apply_rope
        modeling.eager_attention_forward = eager
        del module.expand_kv
        for hook in hooks:
            hook.remove()


def run_module(module, rotary, hidden, positions, mask) -> dict:
    """One forward call; what it computed with, tokens first."""
    with torch.no_grad(), recording(module) as record:
        module(hidden, rotary(hidden, positions), mask)
    for name in ("latent", "k_rope", "query"):
        assert torch.equal(record[name], rounded(record[name])), name
    assert torch.equal(module.kv_b_proj.weight, rounded(module.kv_b_proj.weight))
    assert record["scaling"] == float(np.float32(record["scaling"]))
    return record


def bundle_tensors(case: Case, module, record: dict, rng: np.random.Generator) -> list[Tensor]:
    """The module problem: pools at permuted slots, the rest of them NaN."""
    slots = rng.permutation(case.tokens + SPARE_SLOTS)[:case.tokens]
    index = "<i4" if case.index_dtype == "i32" else "<i8"
    kv = np.full((case.tokens + SPARE_SLOTS, LATENT + ROPE), 0x7FC00000, "<u4").view("<f4")
    kv[slots, :LATENT] = record["latent"].numpy()
    kv[slots, LATENT:] = record["k_rope"].numpy()
    query = record["query"][case.prefix:].numpy().astype("<f4")
    listed = case.prefix if case.own_tree_slots else case.tokens

    tensors = [
        Tensor("scale", "f32", np.array(record["scaling"], "<f4")),
        Tensor("q_nope", "f32", query[..., :case.nope]),
        Tensor("q_rope", "f32", query[..., case.nope:]),
    ]
    if case.one_pool:
        tensors.append(Tensor("kv", "f32", kv))
    else:
        tensors += [Tensor("kv_latent", "f32", kv[:, :LATENT]),
                    Tensor("kv_rope", "f32", kv[:, LATENT:])]
    tensors += [
        Tensor("kv_b_proj", "f32", module.kv_b_proj.weight.detach().numpy().astype("<f4")),
        Tensor("node_indptr", "i32", np.array([0, case.nodes], "<i4")),
        Tensor("indptr", case.index_dtype, np.array([0, listed], index)),
        Tensor("slots", case.index_dtype, slots[:listed].astype(index)),
    ]
    if case.own_tree_slots:
        tensors.append(Tensor("tree_slots", case.index_dtype, slots[listed:].astype(index)))
    tensors += [
        Tensor("mask_mode", "i32", np.array(case.mask_mode, "<i4")),
        Tensor("parents", "i32", np.array(case.parents, "<i4")),
    ]
    if case.mask_mode == 3:
        tensors.append(Tensor("mask_words", "u32", packed_mask(case.parents)))
    output = record["output"][case.prefix:].numpy().astype("<f4")
    return tensors + [Tensor("module_output", "f32", output)]


def packed_mask(parents: tuple[int, ...]) -> np.ndarray:
    """Bit j % 32 of word j / 32 of row i: node i sees node j."""
    bits = np.packbits(tree_visibility(parents), axis=1, bitorder="little")
    bits = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 4)))
    return np.ascontiguousarray(bits).view("<u4")


def problem_visibility(t: dict[str, np.ndarray], prefix: int) -> np.ndarray:
    """[R,tokens] from the bundle's own mask."""
    nodes = len(t["parents"])
    if t["mask_mode"] == 2:
        tree = tree_visibility(tuple(t["parents"].tolist()))
    else:
        column = np.arange(nodes)
        tree = (t["mask_words"][:, column // 32] >> (column % 32).astype("<u4") & 1).astype(bool)
        assert np.array_equal(tree, tree_visibility(tuple(t["parents"].tolist())))
    return np.concatenate([np.ones((nodes, prefix), bool), tree], axis=1)


def absorbed(t: dict[str, np.ndarray], softmax_type) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Absorbed attention of a bundle in float64, only the softmax in softmax_type.

    Returns the output [R,H,V], the scores [R,H,tokens] (masked ones -inf) and the probabilities.
    """
    rows, heads, nope = t["q_nope"].shape
    slots = np.concatenate([t["slots"], t.get("tree_slots", t["slots"][:0])])
    if "kv" in t:
        kv = t["kv"][slots].astype(np.float64)
    else:
        kv = np.concatenate([t["kv_latent"][slots], t["kv_rope"][slots]], 1).astype(np.float64)
    assert len(kv) == len(slots) and not np.isnan(kv).any()
    latent, k_rope = kv[:, :LATENT], kv[:, LATENT:]
    weight = t["kv_b_proj"].astype(np.float64).reshape(heads, -1, LATENT)
    w_uk, w_uv = weight[:, :nope], weight[:, nope:]

    q_latent = np.einsum("rhd,hdl->rhl", t["q_nope"].astype(np.float64), w_uk)
    scores = np.einsum("rhl,tl->rht", q_latent, latent)
    scores += np.einsum("rhp,tp->rht", t["q_rope"].astype(np.float64), k_rope)
    scores *= float(t["scale"])
    visible = problem_visibility(t, len(slots) - rows)
    scores = np.where(visible[:, None], scores, -np.inf)
    shifted = scores.astype(softmax_type)
    weights = np.exp(shifted - shifted.max(-1, keepdims=True))
    probability = (weights / weights.sum(-1, keepdims=True)).astype(np.float64)
    output = np.einsum("rht,tl->rhl", probability, latent)
    return np.einsum("rhl,hvl->rhv", output, w_uv), scores, probability


def report_absorbed(data: bytes) -> None:
    """Reads a bundle back and holds the absorbed formula against the module's output."""
    t = {tensor.name: tensor.array for tensor in parse(data)[1]}
    expected = t["module_output"].astype(np.float64)
    top = np.abs(expected).max()
    output, scores, probability = absorbed(t, np.float64)
    error = np.abs(output - expected).max() / top
    error32 = np.abs(absorbed(t, np.float32)[0] - expected).max() / top
    visible = np.where(np.isfinite(scores), scores, np.nan)
    spread = np.nanmax(visible, -1) - np.nanmin(visible, -1)
    peak = probability.max(-1)
    rms = np.sqrt((expected**2).mean())
    print(f"  module_output: max |.| {top:.3f}, rms {rms:.3f}")
    print(f"  visible scores: max |.| {np.nanmax(np.abs(visible)):.2f}, "
          f"max - min of a row {spread.min():.1f} to {spread.max():.1f}")
    print(f"  largest probability of a row: {peak.min():.3f} to {peak.max():.3f}, "
          f"mean {peak.mean():.3f}")
    print(f"  absorbed against module, relative to max: float64 softmax {error:.2e}, "
          f"float32 softmax {error32:.2e}")
    assert error <= MAX_ERROR


def report_paths(case: Case, module, rotary, hidden, mask, record: dict) -> None:
    """The module itself, without a tree: each node as the last token of a plain causal sequence.

    Also what a causal mask over the tree rows would change, to show that the mask matters.
    """
    top = record["output"][case.prefix:].abs().max()
    error = 0.0
    for node in range(case.nodes):
        path = path_to(case.parents, node)
        tokens = list(range(case.prefix)) + [case.prefix + n for n in path]
        causal = torch.full((len(tokens), len(tokens)), torch.finfo(torch.float64).min,
                            dtype=torch.float64).triu(1)[None, None]
        alone = run_module(module, rotary, hidden[:, tokens], torch.arange(len(tokens))[None],
                           causal)
        difference = alone["output"][-1] - record["output"][case.prefix + node]
        error = max(error, float(difference.abs().max() / top))
    chain = torch.full_like(mask, torch.finfo(torch.float64).min).triu(1)
    wrong = run_module(module, rotary, hidden, position_ids(case), chain)["output"]
    change = float((wrong - record["output"])[case.prefix:].abs().max() / top)
    print(f"  node as the end of its own path, relative to max: {error:.2e}; "
          f"with a causal mask instead: {change:.2f}")
    assert error <= MAX_ERROR and change > 0.1


def capture(case: Case) -> bytes:
    """One bundle's bytes; prints what was measured."""
    rng = np.random.default_rng(case.seed)
    module, rotary = build_module(case, rng)
    hidden = torch.from_numpy(rng.standard_normal((1, case.tokens, HIDDEN), np.float32)).double()
    own_scaling = module.scaling
    module.scaling = float(np.float32(own_scaling))
    mask = additive_mask(case)
    record = run_module(module, rotary, hidden, position_ids(case), mask)
    data = build(case.name, bundle_tensors(case, module, record, rng))

    plain = (case.nope + ROPE) ** -0.5
    print(f"{case.name}: {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}")
    print(f"  scaling: module {own_scaling!r}, stored {module.scaling!r}, "
          f"stored - module {module.scaling - own_scaling:.3e}, "
          f"times sqrt(qk_head_dim) {own_scaling / plain:.6f}")
    print(f"  factor in RoPE's cos and sin: {rotary.attention_scaling:.6f}")
    report_absorbed(data)
    report_paths(case, module, rotary, hidden, mask, record)
    return data


def main(arguments: list[str]) -> int:
    """Entry of the command line."""
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    print(f"python {platform.python_version()}, torch {torch.__version__}, "
          f"transformers {transformers.__version__}, numpy {np.__version__}")
    status = 0
    for case in CASES:
        data = capture(case)
        path = DATA / f"{case.name}.kdtr"
        if not arguments:
            path.write_bytes(data)
        elif path.read_bytes() != data:
            print(f"{path.name}: differs", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
