"""What a run's memory need means: intervals, the device's capacity, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from trainlint.memory.ledger import Ledger

Verdict = Literal["fits", "tight", "exceeds", "unknown"]


@dataclass(frozen=True, slots=True)
class Interval:
    """Bytes between which the truth lies, and the most likely value."""

    low: int
    likely: int
    high: int


@dataclass(frozen=True, slots=True)
class Assessment:
    """The memory of a run per device.

    `allocated` is what the framework's allocator holds in tensors, `device_use` what the driver shows. `capacity` is
    what a run may use of the device (low, high; None: unknown). *exceeds*: even the low estimate is over the largest
    capacity; *tight*: the high one is over the smallest; *unknown*: no device. `ledger` and `variant` compute when
    called: the entries that sum to the likely peak, and the same run with other values by path
    (`variant({"batch.micro": 1})`). `glance` gives only the likely device use of such a variant, at a fraction of the
    price.
    """

    allocated: Interval
    device_use: Interval
    capacity: tuple[int, int] | None
    verdict: Verdict
    peak_phase: str
    phases: Mapping[str, int]
    parameters: int
    trainable: int
    assumptions: tuple[str, ...]
    unknown: tuple[str, ...]
    ledger: Callable[[], Ledger]
    variant: Callable[[Mapping[str, object]], Assessment | None]
    glance: Callable[[Mapping[str, object]], int | None] | None = None
