# SPDX-License-Identifier: Apache-2.0
"""Who is measured, what each computes, and its limits in words."""

import flashinfer_mla
import kdtr
import sglang_triton

# Most heads times nodes of a row of the naive kernel, which takes long.
_NAIVE_ROWS = 64
# Split counts that are tried for SGLang's decode besides its own rule.
_SPLITS = (16, 32, 64, 128, 256)

_NOTES = {
    "flashinfer_fa2": "no tree mask: causal among the nodes; mma.sync; on sm_120 its tile "
                      "configuration is smaller than the one measured here",
    "flashinfer_fa3": "no tree mask: causal among the nodes; wgmma, not on sm_120",
    "sglang_triton_extend": "tree mask, one byte for each node and key; no split of the keys, "
                            "cache read once a head; Triton; on sm_120 its blocks are 32 by 32, "
                            "here 32 by 64",
    "sglang_triton_decode": "one token a request, no mask; Triton",
}


class Backends:
    """The loaded implementations. Any of `flashinfer` and `sglang` may be None: not asked for."""

    def __init__(self, library, flashinfer, sglang):
        self.library = library
        self.flashinfer = flashinfer
        self.sglang = sglang


class Candidate:
    """One implementation at one point: `make` builds the call (a callable with an output o and, for
    kdtr, lse) from a problem; `tree` tells the mask of its truth."""

    def __init__(self, name, mask, make):
        self.name = name
        self.mask = mask
        self.make = make
        self.tree = mask == "tree"
        self.note = _NOTES.get(name)


def candidates(backends, point, layout):
    """Candidates of a row. At contiguous slots kdtr and FlashInfer only."""
    library = backends.library
    found = [Candidate("kdtr_flash", "tree", lambda p: kdtr.Verify(library, p, "flash"))]
    if layout == "random":
        found.append(Candidate("kdtr_flash_exact", "tree",
                               lambda p: kdtr.Verify(library, p, "flash", exact=True)))
        if point.heads * point.nodes <= _NAIVE_ROWS:
            found.append(Candidate("kdtr_naive", "tree",
                                   lambda p: kdtr.Verify(library, p, "naive")))
    if backends.flashinfer is not None:
        for backend in ("fa2", "fa3"):
            found.append(Candidate("flashinfer_" + backend, "causal", _flashinfer(backends,
                                                                                  backend)))
    if backends.sglang is not None and layout == "random" and point.nodes > 1:
        found.append(Candidate("sglang_triton_extend", "tree",
                               lambda p: sglang_triton.Extend(backends.sglang, p)))
    return found


def _flashinfer(backends, backend):
    return lambda problem: flashinfer_mla.Verify(backends.flashinfer, problem, backend)


def decode_candidates(backends):
    """Candidates of SGLang's decode, its own rule first. With one node a request the causal mask,
    the tree's and none are the same."""
    return [Candidate("sglang_triton_decode", "none",
                      lambda p, s=splits: sglang_triton.Decode(backends.sglang, p, s))
            for splits in (None,) + _SPLITS]


def decode_note(own, times):
    """Note of a decode row: own rule's splits and time, and what was tried."""
    tried = ", ".join(str(splits) for splits in _SPLITS)
    return (f"{_NOTES['sglang_triton_decode']}; best of its own rule and of {tried} splits: "
            f"{times[0]}; its own rule: {own[0]} splits, {own[1]:.2f} us")
