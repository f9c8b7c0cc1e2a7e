"""Which changes make a run fit its device: a search over variants of the estimate, the cheapest changes first.

In order: a smaller micro batch with more accumulation trains the same and costs some speed; activation checkpointing
recomputes the forward pass; fused kernels and 8-bit moments change numbers slightly; a shorter length is proposed only
where the data are known to be shorter; adapters train something else and come last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from trainlint.memory.assessment import Assessment
from trainlint.run import TrainingRun, Value, known

Values = Mapping[str, object]

ADAM = ("adamw_torch", "adamw_torch_fused", "adamw_hf", "adamw_apex_fused", "adamw_anyprecision", "adamw")
LIKELY_SHARE = 0.92
"""Where no change fits for certain, one whose likely need is below this share of the device will do."""


@dataclass(frozen=True, slots=True)
class Change:
    """Values by path that make the run fit, and the bytes of the device that it then uses: likely and at most."""

    values: Values
    likely: int
    high: int


@dataclass(frozen=True, slots=True)
class Fit:
    """What a search found: `changes`, each of which alone makes the run fit, the cheapest first; `least`, everything at
    once that trains the same parameters, whether it fits or not (None: there is nothing to change).
    """

    changes: tuple[Change, ...] = ()
    least: Change | None = None


def fitting(memory: Assessment, run: TrainingRun, sayable: Callable[[Values], bool], limit: int = 2) -> Fit:
    """Up to `limit` changes, each of which makes the run fit. Nothing where no device is known.

    `sayable` tells whether the user's format has words for a change.
    """
    if memory.capacity is None:
        return Fit()
    search = _Search(memory, memory.capacity[0])
    batches = [step for step in _smaller_batches(run) if sayable(step)]
    steps = [step for step in _steps(run) if sayable(step)]
    together: dict[str, object] = {}
    for step in (*batches[-1:], *steps):
        together |= step
    least = search.changed(together)
    if least is not None and search.fits(least):
        return Fit(tuple(search.cheapest(batches, steps, least, limit)), least)
    for step in _adapters(run):
        if sayable(step):
            for values in (step, {**together, **step}):
                adapted = search.changed(values)
                if adapted is not None and search.fits(adapted):
                    return Fit((adapted,), least)
    return Fit((), least)


@dataclass(frozen=True, slots=True)
class _Search:
    memory: Assessment
    room: int

    def changed(self, values: Values) -> Change | None:
        """What the run needs with other values; None where there are none, or it can not be said."""
        variant = self.memory.variant(values) if values else None
        return Change(dict(values), variant.device_use.likely, variant.device_use.high) if variant is not None else None

    def fits(self, change: Change) -> bool:
        """Whether it fits for certain, or is likely to with room to spare."""
        return change.high <= self.room or change.likely <= LIKELY_SHARE * self.room

    def cheapest(self, batches: list[Values], steps: list[Values], least: Change, limit: int) -> Iterator[Change]:
        """Single changes that fit, else as few together as do; with `least`, which is all of them, it fits."""
        found = 0
        for group in (self.largest(batches), *map(self.changed, steps)):
            if group is not None and self.fits(group):
                yield group
                found += 1
            if found == limit:
                return
        if not found:
            yield self.fewest(least, [*batches[-1:], *steps])

    def largest(self, batches: list[Values]) -> Change | None:
        """The first of ever smaller batches that fits; the last is tried before the others."""
        last = self.changed(batches[-1]) if batches else None
        if last is None or not self.fits(last):
            return None
        tried = (self.changed(values) for values in batches[:-1])
        return next((change for change in tried if change is not None and self.fits(change)), last)

    def fewest(self, change: Change, steps: list[Values]) -> Change:
        """The change without the steps that it does without, the dearest tried first."""
        for step in reversed(steps):
            rest = self.changed({path: value for path, value in change.values.items() if path not in step})
            if rest is not None and self.fits(rest):
                change = rest
        return change


def _smaller_batches(run: TrainingRun) -> Iterator[Values]:
    """The micro batch halved as often as it goes, the effective batch kept."""
    micro, steps = known(run.batch.micro), known(run.batch.accumulation)
    if micro is None:
        return
    size = micro
    while size > 1 and size % 2 == 0:
        size //= 2
        if steps is None:
            yield {"batch.micro": size}
        else:
            yield {"batch.micro": size, "batch.accumulation": steps * micro // size}
    if size > 1:
        yield {"batch.micro": 1, "batch.accumulation": (steps or 1) * micro}


def _steps(run: TrainingRun) -> Iterator[Values]:
    if _word(run.checkpointing.kind) != "full":
        yield {"checkpointing.kind": "full"}
    if _word(run.kernels) in ("", "none"):
        yield {"kernels": "liger", "loss": "liger"}
    names = [value.value for value in run.possible.get("optimizer.name", ())] or [_word(run.optimizer.name)]
    if _word(run.method) in ("full", "freeze") and all(name in ADAM for name in names):
        yield {"optimizer.name": "adamw_bnb_8bit"}
    length, longest = known(run.length.max), run.data.tokens.get("max")
    if length is not None and longest is not None and not known(run.data.estimated, False):
        shorter = -(-longest.value // 64) * 64
        if shorter < length:
            yield {"length.max": shorter}


def _adapters(run: TrainingRun) -> Iterator[Values]:
    lora = {
        "method": "lora",
        "adapter.rank": known(run.adapter.rank, 16),
        "adapter.targets": known(run.adapter.targets, ("all-linear",)),
        "adapter.dtype": "float32",
    }
    if _word(run.method) == "full":
        yield lora
    if _word(run.method) in ("full", "lora") and known(run.quantization.bits) is None:
        yield {**lora, "method": "qlora", "quantization.bits": 4, "quantization.type": "nf4"}


def _word(value: Value[str] | None) -> str:
    return "" if value is None else value.value
