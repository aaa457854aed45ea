# SPDX-License-Identifier: Apache-2.0
"""Rows of op verify and accuracy: each output is checked against float64 before it is timed."""

import gc

import torch

import implementations
from points import cache_bytes, floor_us
from problem import SCALE, Problem
from truth import Truth, WrongOutput, errors

# Largest error of a log-sum-exp that counts as right, as bench has it.
_LSE_LIMIT = 2e-5


class Run:
    """What all sections share: loaded implementations, timer, rows so far and failures."""

    def __init__(self, backends, timer, ceilings, samples):
        self.backends = backends
        self.timer = timer
        self.ceilings = ceilings
        self.samples = samples
        self.rows = []
        self.failures = []

    def fail(self, what, cause):
        """Records a row that is not written."""
        self.failures.append(f"{what}: {cause}")
        print(f"FAILED {what}: {cause}", flush=True)


def free():
    """Gives the memory of what is no longer used back to the device."""
    gc.collect()
    torch.cuda.empty_cache()


def checked(candidate, call, truths):
    """Runs once into the poisoned output and compares all of it. Returns fields of the row."""
    call()
    torch.cuda.synchronize()
    truth, lse = truths["tree" if candidate.tree else "causal"]
    relative, largest = errors(call.o, truth)
    fields = {"max_abs_error": largest, "relative_error": relative}
    if hasattr(call, "lse"):
        fields["lse_error"] = float((call.lse.double() - lse).abs().amax())
        if not fields["lse_error"] <= _LSE_LIMIT:
            raise WrongOutput(f"a log-sum-exp differs by {fields['lse_error']:.3e}")
    return fields


def both_truths(problem):
    """Truths of a problem: with its trees and causal."""
    truth = Truth(problem, SCALE)
    return {"tree": truth.of(problem.visible), "causal": truth.of(problem.causal)}


def point_fields(point):
    """Shapes as a row has them."""
    return {"B": point.batch, "H": point.heads, "Q": point.nodes, "N": point.prefix}


def _row(run, candidate, problem, fields, time):
    point = problem.point
    row = {"op": "verify", "implementation": candidate.name, "mask": candidate.mask,
           **point_fields(point), "layout": problem.layout, "row_stride_bytes": 1152,
           "median_us": time.median, "p25_us": time.p25, "p75_us": time.p75,
           "samples": time.count, **fields}
    if run.ceilings is not None:
        row["floor_us"] = floor_us(point, problem.layout, run.ceilings)
    row["gbps"] = cache_bytes(point) / time.median * 1e-3
    row["set"] = "table"
    if candidate.note is not None:
        row["page_size"] = 1
        row["note"] = candidate.note
    return row


def describe(row):
    """One line for the screen."""
    spread = row["p75_us"] - row["p25_us"]
    wide = " wide" if spread > max(0.6, 0.03 * row["median_us"]) else ""
    return (f"{row['op']:<6} {row['implementation']:<22} {row['B']:>3} {row['H']:>3} {row['Q']:>3} "
            f"{row['N']:>7} {row['layout']:<10} {row['mask']:<6} {row['median_us']:>11.2f} us "
            f"({row['p25_us']:.2f} to {row['p75_us']:.2f}, {row['samples']}){wide}  "
            f"rel {row['relative_error']:.2e}")


def verify_point(run, point, layout, seed):
    """Rows of one point and layout."""
    problem = Problem(point, layout, seed)
    truths = both_truths(problem)
    for candidate in implementations.candidates(run.backends, point, layout):
        what = f"{candidate.name} at {tuple(point)} {layout}"
        try:
            call = candidate.make(problem)
            fields = checked(candidate, call, truths)
            time = run.timer.measure(call, run.samples)
            errors(call.o, truths["tree" if candidate.tree else "causal"][0])
        except Exception as cause:  # a peer may raise anything; the row is missing, and it is said
            run.fail(what, f"{type(cause).__name__}: {cause}")
            continue
        run.rows.append(_row(run, candidate, problem, fields, time))
        print(describe(run.rows[-1]), flush=True)
        del call
    if run.backends.sglang is not None and layout == "random" and point.nodes == 1:
        _decode(run, problem, truths)
    del problem, truths
    free()


def _decode(run, problem, truths):
    """The row of SGLang's decode: the fastest of its own rule and a few split counts."""
    own, best = None, None
    for candidate in implementations.decode_candidates(run.backends):
        try:
            call = candidate.make(problem)
            fields = checked(candidate, call, truths)
            time = run.timer.measure(call, run.samples)
            errors(call.o, truths["causal"][0])
        except Exception as cause:  # as above
            run.fail(f"{candidate.name} at {tuple(problem.point)}", f"{type(cause).__name__}: "
                                                                    f"{cause}")
            return
        own = own or (call.splits, time.median)
        if best is None or time.median < best[1].median:
            best = (call.splits, time, fields)
        del call
    candidate.note = implementations.decode_note(own, best)
    run.rows.append(_row(run, candidate, problem, best[2], best[1]))
    print(describe(run.rows[-1]), candidate.note, flush=True)


def accuracy_point(run, point, seeds):
    """Rows of op accuracy: kdtr and the Triton kernel on the same inputs, no timing."""
    for seed in seeds:
        problem = Problem(point, "random", 1000 + seed)
        truths = {"tree": Truth(problem, SCALE).of(problem.visible)}
        for candidate in implementations.candidates(run.backends, point, "random"):
            if candidate.name not in ("kdtr_flash", "sglang_triton_extend"):
                continue
            try:
                fields = checked(candidate, candidate.make(problem), truths)
            except Exception as cause:  # as above
                run.fail(f"accuracy of {candidate.name} at {tuple(point)} seed {seed}",
                         f"{type(cause).__name__}: {cause}")
                continue
            run.rows.append({"op": "accuracy", "implementation": candidate.name,
                             **point_fields(point), "mask": "tree", "seed": seed,
                             "relative_error": fields["relative_error"]})
        del problem, truths
        free()
    ours = [row["relative_error"] for row in run.rows if row["op"] == "accuracy"
            and row["implementation"] == "kdtr_flash" and _at(row, point)]
    theirs = [row["relative_error"] for row in run.rows if row["op"] == "accuracy"
              and row["implementation"] == "sglang_triton_extend" and _at(row, point)]
    print(f"accuracy {tuple(point)} kdtr " + " ".join(f"{e:.3e}" for e in ours)
          + " Triton " + " ".join(f"{e:.3e}" for e in theirs), flush=True)


def _at(row, point):
    return (row["B"], row["H"], row["Q"], row["N"]) == tuple(point)
