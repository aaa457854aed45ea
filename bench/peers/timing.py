# SPDX-License-Identifier: Apache-2.0
"""Time of a call on the device: events around it, the host ahead of the device, a cold L2."""

import torch
import triton
import triton.language as tl

from points import summarize

SPIN_US = 350.0  # of a spinning kernel before a sample, at least
FLUSH_BYTES = 256 << 20
WARM_UP = 3
_MOST_SPIN_US = 50000.0


@triton.jit
def _read(data, count, sink, block: tl.constexpr):
    """Reads all of it, as bench's flush does: a small kernel without shared memory of its own.
    torch.sum in its place costs the call behind it up to 2 us, which bench does not see."""
    total = tl.zeros([block], tl.float32)
    for start in range(tl.program_id(0) * block, count, tl.num_programs(0) * block):
        total += tl.load(data + start + tl.arange(0, block))
    if tl.max(total, 0) == 1.0:  # never, with the zeros that are there
        tl.store(sink, 1.0)


class HostBehind(Exception):
    """The host could not enqueue a call before the device wanted it."""


class Timer:
    """Takes samples on the current stream. `spin_us` grows where a call needs the host for longer
    than the spinning kernel lasts; the largest used is kept for the report."""

    def __init__(self):
        self.flush = torch.zeros(FLUSH_BYTES // 4, device="cuda")
        self.sink = torch.zeros((), device="cuda")
        self.begin = torch.cuda.Event(enable_timing=True)
        self.end = torch.cuda.Event(enable_timing=True)
        self.cycles_per_us = self._calibrate()
        self.largest_spin_us = SPIN_US

    def _calibrate(self):
        """Cycles of torch's spinning kernel a microsecond."""
        cycles = 2000000
        for _ in range(2):
            self.begin.record()
            torch.cuda._sleep(cycles)
            self.end.record()
            self.end.synchronize()
        return cycles / (1000.0 * self.begin.elapsed_time(self.end))

    def flush_l2(self):
        """Evicts the L2's lines by reading others."""
        _read[(1024,)](self.flush, self.flush.numel(), self.sink, block=1024)

    def sample(self, call, spin_us, flush=True):
        """(microseconds of one call, whether the host was ahead). It was not where the device
        reached the call before the host had enqueued all of it: then a gap has been timed."""
        if flush:
            self.flush_l2()
        torch.cuda._sleep(int(spin_us * self.cycles_per_us))
        self.begin.record()
        call()
        self.end.record()
        ahead = not self.begin.query()
        self.end.synchronize()
        return 1000.0 * self.begin.elapsed_time(self.end), ahead

    def measure(self, call, samples=0, flush=True, warm_up=WARM_UP):
        """Summary of a call. samples 0: as many as sample_count says of the last warm-up, of which
        there is at least one then. Samples for which the host was not ahead are thrown away, and
        all are taken again behind a longer spin. Raises HostBehind where no spin is long enough."""
        last = 0.0
        for _ in range(max(warm_up, 0 if samples else 1)):
            last, _ = self.sample(call, SPIN_US, flush)
        samples = samples or sample_count(last)
        spin_us = SPIN_US
        taken = []
        while len(taken) < samples:
            time, ahead = self.sample(call, spin_us, flush)
            if ahead:
                taken.append(time)
                continue
            spin_us *= 2.0
            if spin_us > _MOST_SPIN_US:
                raise HostBehind(f"the host needs more than {_MOST_SPIN_US / 2000.0:g} ms a call")
            taken = []
        self.largest_spin_us = max(self.largest_spin_us, spin_us)
        return summarize(taken)


def sample_count(microseconds):
    """Samples of a call of that length: 25, 9 above 2 ms, 5 above 15 ms, 3 above 500 ms."""
    if microseconds > 500000.0:
        return 3
    if microseconds > 15000.0:
        return 5
    return 9 if microseconds > 2000.0 else 25
