#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kdtr, FlashInfer and SGLang's Triton kernels side by side on one GPU: see README.md.

Exit status: 0 where every row was measured and right, 1 where one was not, 2 for bad input."""

import argparse
import os
import sys
import time

# Every bytecode file would be left in the source folder.
sys.dont_write_bytecode = True

from points import InputError, parse_point, read_limits  # noqa: E402

_HERE = os.path.dirname(os.path.abspath(__file__))


def parse_options(arguments):
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--site", required=True, help="folder with the peers' files (make_kit.sh)")
    parser.add_argument("--kdtr", required=True, help="folder with libkdtr.so.0, libkdtr_cuda.so.0")
    parser.add_argument("--kit", required=True, help='file of lines "name value": commit, '
                                                     "sources_sha256")
    parser.add_argument("--out", help="result file; without it only the table is printed")
    parser.add_argument("--limits", default=os.path.join(_HERE, "..", "limits.txt"),
                        help="file with the points (default: bench/limits.txt)")
    parser.add_argument("--points", nargs="+", metavar="B,H,Q,N", help="these points only")
    parser.add_argument("--ceilings", help="bench result file of the same card, made right before")
    parser.add_argument("--accepted-length", type=float, default=4.0,
                        help="tokens a verify call yields, for op served (default: 4)")
    parser.add_argument("--quick", action="store_true",
                        help="5 samples, one seed, two prefixes of op served")
    parser.add_argument("--no-verify", action="store_true")
    parser.add_argument("--no-accuracy", action="store_true")
    parser.add_argument("--no-served", action="store_true")
    parser.add_argument("--profile", metavar="IMPLEMENTATION",
                        help="one call of it at the one point of --points, between the profiler's "
                             "start and stop")
    options = parser.parse_args(arguments)
    if not options.accepted_length >= 1.0 or options.accepted_length == float("inf"):
        raise InputError("--accepted-length: not a number of at least 1")
    if options.profile and (not options.points or len(options.points) != 1):
        raise InputError("--profile needs one point in --points")
    options.points = ([parse_point(text) for text in options.points] if options.points
                      else read_limits(options.limits))
    return options


def profile(run, name, point):
    """Runs one implementation once between cudaProfilerStart and -Stop, after it was checked."""
    import torch

    import implementations
    from measure import both_truths, checked
    from problem import Problem
    problem = Problem(point, "random", 1)
    for candidate in implementations.candidates(run.backends, point, "random"):
        if candidate.name == name:
            call = candidate.make(problem)
            checked(candidate, call, both_truths(problem))
            run.timer.flush_l2()
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
            call()
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()
            return
    raise InputError(f"--profile: no {name} at {tuple(point)}")


def sections(run, options):
    """All rows that are asked for."""
    import measure
    import served
    begin = time.monotonic()
    if not options.no_verify:
        for layout in ("random", "contiguous"):
            for number, point in enumerate(options.points):
                measure.verify_point(run, point, layout, 100 + number)
        print(f"verify: {time.monotonic() - begin:.1f} s", flush=True)
    begin = time.monotonic()
    if not options.no_accuracy and run.backends.sglang is not None:
        for point in options.points:
            if point.nodes > 1:
                measure.accuracy_point(run, point, (1,) if options.quick else (1, 2, 3, 4, 5))
        print(f"accuracy: {time.monotonic() - begin:.1f} s", flush=True)
    begin = time.monotonic()
    if not options.no_served:
        prefixes = (4096, 32768) if options.quick else served.PREFIXES
        served.served(run, served.NODES, prefixes, options.accepted_length)
        print(f"served: {time.monotonic() - begin:.1f} s", flush=True)


def main(arguments):
    """The exit status."""
    options = parse_options(arguments)
    import environment
    kit = environment.read_kit(options.kit)
    import torch

    import flashinfer_mla
    import implementations
    import kdtr
    import measure
    import sglang_triton
    import timing
    if not torch.cuda.is_available():
        raise InputError("torch finds no CUDA device")
    sys.path.insert(0, options.site)
    library = kdtr.Library(options.kdtr)
    samples = 5 if options.quick else 0
    facts = environment.environment(options.site, kit, library, samples)
    for name, value in facts.items():
        print(f"{name:<18} {value}")
    ceilings = (environment.read_ceilings(options.ceilings, facts["gpu"]) if options.ceilings
                else None)
    if ceilings is None:
        print("no --ceilings: rows without floors")
    backends = implementations.Backends(library, flashinfer_mla.load(options.site),
                                        sglang_triton.load(options.site))
    # Not the default stream, which orders itself with all others: no server uses it for this.
    with torch.cuda.stream(torch.cuda.Stream()):
        run = measure.Run(backends, timing.Timer(), ceilings, samples)
        if options.profile:
            profile(run, options.profile, options.points[0])
            return 0
        sections(run, options)
    facts["longest_spin_us"] = run.timer.largest_spin_us
    print(f"longest spin {run.timer.largest_spin_us:g} us")
    if options.out:
        import results
        results.write_file(options.out, facts, ceilings, run.rows)
        print(f"{len(run.rows)} rows in {options.out}")
    for failure in run.failures:
        print(f"not measured: {failure}", file=sys.stderr)
    return 1 if run.failures or not run.rows else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except InputError as error:
        print(f"peers.py: {error}", file=sys.stderr)
        sys.exit(2)
