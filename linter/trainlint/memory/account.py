"""Counting bytes: the running total, the highest total of every phase, and on demand what it consists of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainlint.memory.graph import Tensor

SIZES = {"float32": 4, "bfloat16": 2, "float16": 2, "int64": 8, "int32": 4, "bool": 1, "uint8": 1, "int8": 1}
"""Bytes of an element."""

Key = tuple[str, str]
"""What a tensor is for, and its dtype."""
Totals = dict[Key, tuple[int, int]]
"""Bytes and elements that live under a key."""
Mark = tuple[int, Totals | None]
"""The running total at some moment, with what it consisted of."""


def rounded(size: int) -> int:
    """Bytes the allocator hands out for a request of `size` (kMinBlockSize, c10/cuda/CUDACachingAllocator.cpp)."""
    return (size + 511) & -512


class Register:
    """What lives right now, by purpose and dtype, and the picture of it at every phase's highest total."""

    __slots__ = ("pictures", "totals")

    def __init__(self) -> None:
        self.totals: Totals = {}
        self.pictures: dict[str, Totals] = {}

    def add(self, label: str, dtype: str, elements: int, nbytes: int) -> Key:
        """A tensor is born; returns the key to drop it by."""
        key = (label, dtype)
        old = self.totals.get(key, (0, 0))
        self.totals[key] = (old[0] + nbytes, old[1] + elements)
        return key

    def drop(self, key: Key, elements: int, nbytes: int) -> None:
        """A tensor is gone."""
        old = self.totals[key]
        self.totals[key] = (old[0] - nbytes, old[1] - elements)

    def rename(self, tensor: Tensor, label: str) -> None:
        """A living tensor changes its purpose (a result becomes a gradient)."""
        self.drop(tensor.key, tensor.elements, tensor.nbytes)
        tensor.key = self.add(label, tensor.dtype, tensor.elements, tensor.nbytes)

    def take(self, phase: str) -> None:
        """Remember what lives as the picture of `phase`."""
        self.pictures[phase] = dict(self.totals)

    def shift(self, totals: Totals, before: Totals, times: int) -> Totals:
        """`totals` with `times` times what was added since `before`."""
        out = dict(totals)
        for key, (nbytes, elements) in self.totals.items():
            old = before.get(key, (0, 0))
            if (nbytes, elements) != old:
                have = out.get(key, (0, 0))
                out[key] = (have[0] + times * (nbytes - old[0]), have[1] + times * (elements - old[1]))
        return out


class Memory:
    """The running total, and the largest total seen in each phase."""

    __slots__ = ("current", "high", "label", "peaks", "phase", "register")

    def __init__(self, register: bool = False) -> None:
        self.current = 0
        self.high = 0
        self.phase = "setup"
        self.peaks: dict[str, int] = {}
        self.label = ""
        self.register = Register() if register else None

    def enter(self, phase: str) -> None:
        """Begin a phase, or go on with one that was left: what is alive counts for it at once."""
        self.peaks[self.phase] = self.high
        self.phase = phase
        self.high = self.peaks.get(phase, -1)
        self.check()

    def check(self) -> None:
        """Compare the running total with the phase's highest, and take the picture where it is a new one."""
        if self.current > self.high:
            self.high = self.current
            if self.register is not None:
                self.register.take(self.phase)

    def close(self) -> dict[str, int]:
        """The largest total of every phase."""
        self.peaks[self.phase] = self.high
        return self.peaks

    def mark(self) -> Mark:
        """The state to compare with later."""
        return self.current, dict(self.register.totals) if self.register is not None else None

    def repeat(self, mark: Mark, times: int) -> None:
        """What was added (or freed) since `mark` happens `times` times more."""
        before, totals = mark
        self.current += times * (self.current - before)
        if self.register is not None and totals is not None:
            self.register.totals = self.register.shift(self.register.totals, totals, times)
        self.check()

    def open_window(self) -> tuple[int, Totals | None]:
        """Begin to look for a new highest total; hand what this returns to `close_window`."""
        outer = self.high, self.register.pictures.get(self.phase) if self.register is not None else None
        self.high = -1
        self.check()
        return outer

    def close_window(self, outer: tuple[int, Totals | None], mark: Mark, times: int) -> None:
        """Repeat what happened since `mark`, where the window's highest total was shifted along with it."""
        inside, shifted = self.high, self.high + times * (self.current - mark[0])
        best = max(outer[0], inside, shifted)
        register = self.register
        if register is not None and mark[1] is not None:
            if best == outer[0] and outer[1] is not None:
                register.pictures[self.phase] = outer[1]
            elif best == shifted:
                register.pictures[self.phase] = register.shift(register.pictures[self.phase], mark[1], times)
        self.high = best
        self.repeat(mark, times)
