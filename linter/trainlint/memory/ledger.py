"""What the peak consists of: entries that each say what they are, and sum up to the peak exactly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from trainlint.memory.account import SIZES, Totals

STEP = ("inputs", "forward", "reference", "loss", "loss_backward", "backward")
"""The phases of a micro-batch, as the walk names them."""
TRAINING = (*STEP, "optimizer")
ALWAYS = (*TRAINING, "evaluation")

REPORTED = {
    "inputs": "forward", "forward": "forward", "loss": "loss", "loss_backward": "loss", "backward": "backward",
    "optimizer": "optimizer", "evaluation": "evaluation", "reference": "reference", "load": "load",
}  # fmt: skip
"""What a phase of the walk is called in a report."""


class Entry(NamedTuple):
    """One thing that lives on the device: `phases` says when, `formula` how its bytes come about."""

    what: str
    dtype: str
    elements: int
    nbytes: int
    phases: tuple[str, ...]
    formula: str = ""


@dataclass(frozen=True)
class Ledger:
    """All entries that live at the peak; their bytes sum up to `total`."""

    phase: str
    total: int
    entries: tuple[Entry, ...]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)


TEMPORARIES = "optimizer temporaries"


class Budget:
    """Entries that live through whole phases, and what a walk found above them in each phase."""

    __slots__ = ("entries", "pictures", "walked")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.walked: dict[str, int] = {}
        self.pictures: dict[str, Totals] = {}

    def add(
        self, what: str, dtype: str, elements: int, nbytes: int, phases: Iterable[str] = ALWAYS, formula: str = ""
    ) -> None:
        """One more entry, where it is any bytes at all."""
        if nbytes:
            self.entries.append(Entry(what, dtype, elements, nbytes, tuple(phases), formula))

    def see(self, phase: str, peak: int, picture: Totals | None = None) -> None:
        """What a phase needs above the entries; the largest counts."""
        if peak >= self.walked.get(phase, -1):
            self.walked[phase] = peak
            if picture is not None:
                self.pictures[phase] = picture

    def totals(self) -> dict[str, int]:
        """Bytes of each phase of the walk."""
        out = dict(self.walked)
        for entry in self.entries:
            for phase in entry.phases:
                if phase in out:
                    out[phase] += entry.nbytes
        return out

    def held(self, totals: Mapping[str, int]) -> int:
        """Bytes of the entries that live at the peak of `totals`, without what an optimizer makes for a moment."""
        top = max(totals, key=lambda phase: totals[phase])
        return sum([entry.nbytes for entry in self.entries if top in entry.phases and entry.what != TEMPORARIES])

    def ledger(self) -> Ledger:
        """What lives at the peak."""
        totals = self.totals()
        top = max(totals, key=lambda phase: totals[phase])
        out = [_reported(entry) for entry in self.entries if top in entry.phases]
        for (label, dtype), (nbytes, elements) in _settled(self.pictures.get(top, {})).items():
            formula = f"{elements} x {SIZES[dtype]} B, each tensor rounded up to 512 B"
            out.append(Entry(label, dtype, elements, nbytes, _alive(self.pictures, (label, dtype)), formula))
        out.sort(key=lambda entry: -entry.nbytes)
        return Ledger(REPORTED[top], totals[top], tuple(out))


def _settled(picture: Totals) -> Totals:
    """The picture without negative totals, with the same sum.

    Layers that are not walked repeat what one layer did. Where that one freed its neighbour's tensor under another
    name, the repetitions leave a debt under that name, which what they made under theirs pays.
    """
    owed = [(key, total) for key, total in picture.items() if total[0] < 0]
    out = {key: total for key, total in picture.items() if total[0] > 0}
    for (_, dtype), (nbytes, elements) in owed:
        while nbytes < 0 and out:
            payer = max(out, key=lambda key: (key[1] == dtype, out[key][0]))
            have, count = out.pop(payer)
            if have + nbytes > 0:
                out[payer] = have + nbytes, max(1, count + elements)
                nbytes = 0
            else:
                nbytes += have
                elements += count
    return out


def _alive(pictures: Mapping[str, Totals], key: tuple[str, str]) -> tuple[str, ...]:
    alive = (phase for phase, totals in pictures.items() if totals.get(key, (0, 0))[0] > 0)
    return tuple(dict.fromkeys(REPORTED[phase] for phase in alive))


def _reported(entry: Entry) -> Entry:
    phases = tuple(dict.fromkeys(REPORTED[phase] for phase in entry.phases))
    return Entry(entry.what, entry.dtype, entry.elements, entry.nbytes, phases, entry.formula)
