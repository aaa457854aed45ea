# SPDX-License-Identifier: Apache-2.0
"""Points, statistics and floors. Standard library only, so that the self-test needs no GPU."""

import math
from collections import namedtuple

# Shapes of a call: requests, heads, nodes a request, tokens of a request's prefix.
Point = namedtuple("Point", "batch heads nodes prefix")
# Median and quartiles in microseconds, and the number of samples.
Summary = namedtuple("Summary", "median p25 p75 count")

LATENT = 512  # elements of a latent row, also the values
ROPE = 64  # elements of a rope key
ROW = LATENT + ROPE  # elements of a cache row


class InputError(Exception):
    """Bad input of the user's: a file or an option. The text names it."""


def parse_point(text):
    """The point of "B,H,Q,N". Raises InputError for anything else."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != 4 or min(numbers[:3]) < 1 or numbers[3] < 1:
        raise InputError(f"not a point B,H,Q,N: {text!r}")
    return Point(*numbers)


def read_limits(path):
    """The points of a file like bench/limits.txt: lines "B H Q N at_most aim [accepted]"."""
    points = []
    try:
        with open(path, encoding="ascii") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as cause:
        raise InputError(f"cannot read {path}: {cause}") from cause
    for number, line in enumerate(lines, 1):
        fields = line.split("#")[0].split()
        if not fields:
            continue
        if len(fields) not in (6, 7):
            raise InputError(f"{path}:{number}: not six or seven numbers")
        points.append(parse_point(",".join(fields[:4])))
    if not points:
        raise InputError(f"{path}: no points")
    return points


def summarize(samples):
    """Median and quartiles of at least one sample, interpolated between neighbours."""
    ordered = sorted(samples)

    def quantile(fraction):
        at = fraction * (len(ordered) - 1)
        low = int(at)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (at - low) * (ordered[high] - ordered[low])

    return Summary(quantile(0.5), quantile(0.25), quantile(0.75), len(ordered))


def cache_bytes(point):
    """Bytes of the cache rows that a call reads at least once."""
    return point.batch * (point.prefix + point.nodes) * ROW * 2


def interpolate(xs, ys, at):
    """Value at `at`, linear in the logarithm of x; the ends' values hold beyond them."""
    if at <= xs[0]:
        return ys[0]
    for i in range(1, len(xs)):
        if at <= xs[i]:
            part = (math.log(at) - math.log(xs[i - 1])) / (math.log(xs[i]) - math.log(xs[i - 1]))
            return ys[i - 1] + part * (ys[i] - ys[i - 1])
    return ys[-1]


def floor_us(point, layout, ceilings):
    """Shortest time of a call by measured ceilings, as bench computes it: the longer of gathering
    the cache rows once and of the products at the mma.sync rate with rows padded to 16."""
    gather = ceilings["gather"]
    rate = interpolate([entry["rows"] for entry in gather],
                       [entry[layout + "_gbps"] for entry in gather],
                       cache_bytes(point) / ROW / 2)
    memory = cache_bytes(point) / rate * 1e-3
    query_rows = -(-point.heads * point.nodes // 16) * 16
    operations = 2.0 * point.batch * query_rows * (point.prefix + point.nodes) * (ROW + LATENT)
    return max(memory, operations / ceilings["mma_tflops"] * 1e-6)
