"""From the allocator's tensors to what the driver shows: context, cache, fragmentation.

What lives all the time (weights, states) is allocated once and packed tightly; blocks for what comes and goes are kept
for reuse where they do not fit. So the cache grows with the moving part of a peak, and a fixed part comes on top.

Numbers. A CUDA context with cuBLAS and cuDNN loaded takes 0.5 to 1.3 GiB, by card and libraries. Over 61 LoRA runs on
T4 cards the allocator reserved 0.05 to 0.6 of the moving part more than it had allocated, 0.25 at the median. Over 112
published runs on A100 cards the driver showed 0.12 (one card) to 0.3 (FSDP) of it more at the median, besides 0.6 GiB
and, with several cards, about 1 GiB of NCCL's buffers. Driver over allocated was 1.57 at the 90th percentile of all
published pairs: batches of varying lengths leave blocks of many sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainlint.memory.assessment import Interval

GIB = 1 << 30
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Peak:
    """An allocator's peak in bytes, and what of it lives all the time."""

    allocated: int
    held: int

    @property
    def moving(self) -> int:
        """What comes and goes."""
        return max(0, self.allocated - self.held)


@dataclass(frozen=True, slots=True)
class Overhead:
    """What lies between allocated and used: the context, buffers of several devices, the cache as a share of what comes
    and goes.
    """

    context: int
    buffers: int
    cache: float

    def on(self, peak: Peak, devices: int) -> int:
        """What the driver shows for a peak."""
        fixed = self.context + (self.buffers if devices > 1 else 0)
        return peak.allocated + WORKSPACE + int(self.cache * peak.moving) + fixed


WORKSPACE = 2 * int(8.125 * MIB)
"""Two cuBLAS workspaces of 8.125 MiB, held by the allocator."""

LOW = Overhead(int(0.45 * GIB), int(0.1 * GIB), 0.03)
LIKELY = Overhead(int(0.6 * GIB), int(0.8 * GIB), 0.18)
PRESSED = Overhead(int(1.3 * GIB), 2 * GIB, 0.3)
"""At the limit: the allocator gives its cache back before it fails, fragments it can not."""
USUAL = 1.57
"""Driver over allocated in nine of ten published pairs."""
VARYING = 2.5
"""Of the moving part, what is cached besides where batches differ in length: blocks of every length that came by."""


def device_use(
    low: Peak, likely: Peak, high: Peak, devices: int = 1, varying: bool = False, room: int | None = None
) -> Interval:
    """What the driver shows, in bytes. `high` holds all the cache that an allocator keeps, which `room` bounds: before
    it fails, it gives back what it can.
    """
    cached = max(int((USUAL - 1) * high.allocated), int(VARYING * high.moving) if varying else 0)
    pressed = pressing(high, devices)
    most = max(high.allocated + cached + PRESSED.context, pressed)
    if room is not None:
        most = min(most, max(room, pressed))
    return Interval(LOW.on(low, devices), LIKELY.on(likely, devices), max(most, LIKELY.on(likely, devices)))


def pressing(high: Peak, devices: int = 1) -> int:
    """What a run may need not to fail: its highest peak, and what no allocator gives back."""
    return PRESSED.on(high, devices)
