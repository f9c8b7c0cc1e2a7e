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


def fitting(
    memory: Assessment, run: TrainingRun, sayable: Callable[[Values], bool], limit: int = 2
) -> tuple[Change, ...]:
    """Up to `limit` changes, each of which alone makes the run fit; empty where none does or no device is known.

    `sayable` tells whether the user's format has words for a change.
    """
    if memory.capacity is None:
        return ()
    search = _Search(memory, memory.capacity[0])
    single = [change for change in _steps(run) if sayable(change)]
    found: list[Change] = []
    for group in (_smaller_batches(run), *([step] for step in single)):
        fits = next(search.fits(step for step in group if sayable(step)), None)
        if fits is not None:
            found.append(fits)
        if len(found) == limit:
            return tuple(found)
    if found:
        return tuple(found)
    together: dict[str, object] = {}
    batches = [step for step in _smaller_batches(run) if sayable(step)]
    for step in (*batches[-1:], *single):
        together |= step
        fits = next(search.fits([together]), None)
        if fits is not None:
            return (search.fewest(fits, [*batches[-1:], *single]),)
    for step in _adapters(run):
        if sayable(step):
            fits = next(search.fits([step, {**together, **step}]), None)
            if fits is not None:
                return (fits,)
    return ()


def leanest(memory: Assessment, run: TrainingRun, sayable: Callable[[Values], bool]) -> Change | None:
    """Everything at once that trains the same parameters; None where there is nothing to change."""
    together: dict[str, object] = {}
    for step in (*[step for step in _smaller_batches(run) if sayable(step)][-1:], *_steps(run)):
        if sayable(step):
            together |= step
    variant = memory.variant(together) if together else None
    if variant is None:
        return None
    return Change(together, variant.device_use.likely, variant.device_use.high)


@dataclass(frozen=True, slots=True)
class _Search:
    memory: Assessment
    room: int

    def fits(self, changes: Iterator[Values] | list[Values]) -> Iterator[Change]:
        """Those of some changes with which the run fits."""
        for values in changes:
            variant = self.memory.variant(values) if values else None
            if variant is not None:
                need = variant.device_use
                if need.high <= self.room or need.likely <= LIKELY_SHARE * self.room:
                    yield Change(dict(values), need.likely, need.high)

    def fewest(self, change: Change, steps: list[Values]) -> Change:
        """The change without the steps that it does without, the dearest tried first."""
        for step in reversed(steps):
            rest = {path: value for path, value in change.values.items() if path not in step}
            if len(rest) < len(change.values):
                change = next(self.fits([rest]), change)
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
