"""Which changes make a run fit its device: a search over variants of the estimate, the cheapest changes first.

Knobs that keep the training what it is are tried each alone, then as few of them together as do; only where all of them
together are not enough, one that changes the training comes in, with as few of the others as it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from trainlint.memory.assessment import Assessment
from trainlint.memory.knobs import Knob, Values, knobs
from trainlint.run import TrainingRun

LIKELY_SHARE = 0.92
"""Where a run is likely to need more than this share of the device, a change with which it is likely to need less will
do, though it does not fit for certain."""
WORTH = 1.01
"""A knob without which a run needs less than this times as much is left out where nothing fits anyway."""
MOST = 56
"""Variants that a search may ask for."""

Part = tuple[int, int]
"""A knob and its setting, by number."""
Parts = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """Knobs with their settings, and the memory of the run that has them."""

    parts: tuple[tuple[Knob, Values], ...]
    memory: Assessment

    @property
    def values(self) -> Values:
        """All values by path."""
        return {path: value for _, values in self.parts for path, value in values.items()}

    @property
    def keeps(self) -> bool:
        """Whether the training stays what it is."""
        return all(knob.keeps for knob, _ in self.parts)

    @property
    def likely(self) -> int:
        """Bytes of the device that it then is likely to use."""
        return self.memory.device_use.likely

    @property
    def cost(self) -> str:
        """What it costs, those that are free left out where others are not."""
        costs = [knob.cost for knob, _ in self.parts]
        return "; ".join([cost for cost in costs if not cost.startswith("none")] or costs[:1])


def likely_fits(memory: Assessment) -> bool:
    """Whether a run is likely to fit with room to spare, though not for certain."""
    return memory.capacity is not None and memory.device_use.likely <= LIKELY_SHARE * memory.capacity[0]


@dataclass(frozen=True, slots=True)
class Fit:
    """What a search found: `changes` that make the run fit, the cheapest first; `singles`, each knob alone at its
    strongest, where that does not fit; `most`, the single knob that frees most of those that keep the training, and
    `frees`, the bytes that it does.

    `least` is everything at once that keeps the training what it is, where that does not fit (None: it does, or there
    is nothing to change).
    """

    changes: tuple[Change, ...] = ()
    least: Change | None = None
    singles: tuple[Change, ...] = ()
    most: Change | None = None
    frees: int = 0


def fitting(
    memory: Assessment,
    run: TrainingRun,
    sayable: Callable[[Values], bool],
    limit: int = 2,
    thorough: bool = False,
) -> Fit:
    """Up to `limit` changes, each of which makes the run fit. Nothing where no device is known.

    `sayable` tells whether the user's format has words for a change. `thorough`: also what changes the training, and
    what is not enough alone.
    """
    if memory.capacity is None:
        return Fit()
    known = [_sayable(knob, sayable) for knob in knobs(run)]
    search = _Search(memory, memory.capacity[0], [knob for knob in known if knob.settings])
    keeping, changing = search.numbers(keeps=True), search.numbers(keeps=False)
    changes = list(search.alone(keeping, limit))
    least = None
    if not changes:
        found, least = search.together(keeping)
        changes += [found] if found is not None else []
    if not changes or thorough:
        better = search.altered(changing, keeping, limit if thorough else 1)
        changes += [change for change in better if not changes or _better(change, changes[0])]
    if not thorough:
        return Fit(tuple(changes), least)
    singles = [search.made(((knob, len(search.knobs[knob].settings) - 1),)) for knob in (*keeping, *changing)]
    alone = [change for change in singles if change is not None]
    most = min(alone, key=lambda change: (not change.keeps, change.likely), default=None)
    frees = memory.device_use.likely - most.likely if most is not None else 0
    fits = {change.parts[0][0].name for change in changes if len(change.parts) == 1}
    rest = tuple(change for change in alone if change.parts[0][0].name not in fits)
    return Fit(tuple(changes), least, rest, most if frees > 0 else None, max(0, frees))


def _better(change: Change, first: Change) -> bool:
    """Whether a change of the training has something for it that one which keeps it lacks."""
    certain = change.memory.verdict == "fits" and first.memory.verdict != "fits"
    return certain or len(change.parts) < len(first.parts) or len(change.parts) == 1


def _sayable(knob: Knob, sayable: Callable[[Values], bool]) -> Knob:
    """The knob with those of its settings that can be said in the user's file, or elsewhere."""
    settings = knob.settings if knob.phrase else tuple(values for values in knob.settings if sayable(values))
    return replace(knob, settings=settings)


@dataclass(slots=True)
class _Search:
    memory: Assessment
    room: int
    knobs: Sequence[Knob]
    likely: dict[Parts, int | None] = field(default_factory=dict)
    variants: dict[Parts, Change | None] = field(default_factory=dict)

    def numbers(self, keeps: bool) -> list[int]:
        """The knobs that keep the training, or those that do not."""
        return [number for number, knob in enumerate(self.knobs) if knob.keeps == keeps]

    def values(self, parts: Parts) -> Mapping[str, object]:
        """All values of some knobs' settings, by path."""
        settings = (self.knobs[knob].settings[setting] for knob, setting in parts)
        return {path: value for values in settings for path, value in values.items()}

    def need(self, parts: Parts) -> int | None:
        """What the run is likely to need with these settings; None where it can't be said, or too much was asked."""
        if parts not in self.likely:
            if len(self.likely) + len(self.variants) >= MOST:
                return None
            glance = self.memory.glance
            if glance is not None:
                self.likely[parts] = glance(self.values(parts))
            else:
                made = self.made(parts)
                self.likely[parts] = made.likely if made is not None else None
        return self.likely[parts]

    def made(self, parts: Parts) -> Change | None:
        """The change as a whole."""
        if parts not in self.variants:
            memory = self.memory.variant(self.values(parts)) if parts else None
            chosen = tuple((self.knobs[knob], self.knobs[knob].settings[setting]) for knob, setting in parts)
            self.variants[parts] = Change(chosen, memory) if memory is not None else None
        return self.variants[parts]

    def fits(self, parts: Parts) -> bool:
        """Whether it fits for certain; or is likely to with room to spare, where the run as it is does not."""
        need, room = self.need(parts), LIKELY_SHARE * self.room
        if need is None or need > self.room:
            return False
        if need <= room < self.memory.device_use.likely:
            return True
        change = self.made(parts)
        return change is not None and change.memory.verdict == "fits"

    def mildest(self, knob: int, others: Parts = ()) -> Parts | None:
        """The first setting of a knob that fits beside others; the last is tried before the ones between."""
        first, last = 0, len(self.knobs[knob].settings) - 1
        if not self.fits(_joined(others, (knob, last))):
            return None
        while first < last:
            middle = (first + last) // 2
            if self.fits(_joined(others, (knob, middle))):
                last = middle
            else:
                first = middle + 1
        return _joined(others, (knob, last))

    def alone(self, numbers: list[int], limit: int) -> Iterator[Change]:
        """Single knobs that are enough."""
        found = 0
        for knob in numbers:
            parts = self.mildest(knob) if found < limit else None
            change = self.made(parts) if parts is not None else None
            if change is not None:
                found += 1
                yield change

    def together(self, numbers: list[int]) -> tuple[Change | None, Change | None]:
        """As few knobs as are enough together; or, where they are not, all of them at once."""
        parts: Parts = ()
        order = self.strongest(numbers)
        for at, part in enumerate(order):
            before, parts = parts, _joined(parts, part)
            if self.fits(parts):
                return self.surest(before, part, order[at + 1 :]), None
        for part in reversed(parts):  # what frees nothing is not worth a word
            rest = tuple(other for other in parts if other != part)
            need, without = self.need(parts), self.need(rest) if rest else None
            if need is not None and without is not None and without <= WORTH * need:
                parts = rest
        return None, self.made(parts) if parts else None

    def surest(self, before: Parts, last: Part, others: list[Part]) -> Change | None:
        """The change with the last knob, or with another in its place where only that fits for certain."""
        first = self.made(self.eased(_joined(before, last)))
        if first is None or first.memory.verdict == "fits":
            return first
        for other in others:
            parts = _joined(before, other)
            if self.fits(parts):
                change = self.made(self.eased(parts))
                if change is not None and change.memory.verdict == "fits" and len(change.parts) <= len(first.parts):
                    return change
        return first

    def strongest(self, numbers: list[int]) -> list[Part]:
        """The last setting of each knob, those that free most first, without those that do not go with one before."""
        last = [(knob, len(self.knobs[knob].settings) - 1) for knob in numbers]
        last.sort(key=lambda part: self.need((part,)) or self.memory.device_use.likely)
        chosen: list[Part] = []
        for part in last:
            one = self.knobs[part[0]]
            others = [self.knobs[knob] for knob, _ in chosen]
            if not any(other.name == one.against or other.against == one.name for other in others):
                chosen.append(part)
        return chosen

    def eased(self, parts: Parts, kept: int | None = None) -> Parts:
        """The same without the knobs that it does without, the dearest tried first, and each no further than needed;
        `kept` is one that stays.
        """
        for part in reversed(parts):
            rest = tuple(other for other in parts if other != part)
            if rest and part[0] != kept and self.fits(rest):
                parts = rest
        for knob, setting in parts:
            if setting and knob != kept:
                rest = tuple(other for other in parts if other[0] != knob)
                parts = self.mildest(knob, rest) or parts
        return parts

    def altered(self, changing: list[int], keeping: list[int], limit: int) -> list[Change]:
        """Knobs that change the training and are enough, alone or with those that keep it."""
        everything = tuple(sorted(self.strongest(keeping)))
        found: list[Change] = []
        for knob in changing:
            parts = self.mildest(knob)
            if parts is None and everything:
                parts = self.mildest(knob, everything)
                parts = self.eased(parts, knob) if parts is not None else None
            change = self.made(parts) if parts is not None else None
            if change is not None:
                found.append(change)
            if len(found) == limit:
                break
        return found


def _joined(parts: Parts, part: Part) -> Parts:
    return tuple(sorted((*parts, part)))
