"""A run's memory: its values become a setup, what is not known becomes an interval, and the device gives a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from trainlint.memory.assessment import Assessment, Interval, Verdict
from trainlint.memory.device_use import Peak, device_use, pressing
from trainlint.memory.errors import MemoryModelError
from trainlint.memory.estimate import Estimate, estimate, ledger
from trainlint.memory.ledger import Ledger
from trainlint.memory.question import Question, asked, setup_of
from trainlint.memory.standin import widened
from trainlint.run import TrainingRun, Value
from trainlint.run.vocabulary import build

FEW = 256
"""Processes among which a small model's pieces are at their smallest: of thousands, each holds a whole row."""
LIBRARIES = ("torch", "transformers")
KNOWN = (0.95, 1.1)
UNKNOWN = (0.88, 1.25)
"""How far peaks of one setup lie apart between releases and kernels, where those are known and where not.

Against 61 runs on T4 cards, with the very releases that were simulated, peaks were 2.3 % off at most. Published figures
of the same setup differ by 10 to 20 %: heads that copy their logits once more, activations written out or in one
kernel, norms, attention kernels.
"""


def assess(run: TrainingRun) -> Assessment | None:
    """The memory of a run, or None where the model's shape is unknown or beyond the model."""
    question = asked(run)
    if question is None:
        return None
    try:
        corners = _estimates(question)
    except (MemoryModelError, ArithmeticError):  # what the model lacks, and sizes that do not go together
        return None
    likely = corners[0]
    known = all(run.get(f"versions.{package}") is not None for package in LIBRARIES)
    down, up = KNOWN if known else UNKNOWN
    low = min((_scaled(corner, corner.low, down) for corner in corners), key=lambda peak: peak.allocated)
    high = max((_scaled(corner, corner.high, up) for corner in corners), key=lambda peak: peak.allocated)
    devices = _devices(run)
    capacity = _capacity(run)
    room = capacity[1] if capacity is not None else None
    used = device_use(low, Peak(likely.allocated, likely.held), high, devices, _varying(run), room)
    return Assessment(
        allocated=Interval(low.allocated, likely.allocated, high.allocated),
        device_use=used,
        capacity=capacity,
        verdict=_verdict(used.low, pressing(high, devices), capacity, question.unbounded),
        peak_phase=likely.peak_phase,
        phases=likely.phases,
        parameters=likely.parameters,
        trainable=likely.trainable,
        assumptions=tuple(dict.fromkeys((*question.assumptions, *likely.assumptions))),
        unknown=tuple(dict.fromkeys((*question.unknown, *likely.unknown))),
        ledger=lambda: _ledger(question),
        variant=lambda changes: assess(changed(run, changes)),
        glance=lambda changes: likely_use(changed(run, changes)),
    )


def likely_use(run: TrainingRun) -> int | None:
    """The device use that `assess` calls likely, at a fraction of its price: nothing is asked of the ends."""
    question = asked(run)
    if question is None:
        return None
    chosen = {path: options[-1] for path, options in question.options.items()}
    chosen.update({path: span[1] for path, span in question.spans.items()})
    try:
        found = _estimate(question, chosen)
    except (MemoryModelError, ArithmeticError):
        return None
    peak = Peak(found.allocated, found.held)
    return device_use(peak, peak, peak, _devices(run)).likely


def changed(run: TrainingRun, changes: Mapping[str, object]) -> TrainingRun:
    """The same run with other values at some paths."""
    values = dict(run.values)
    for path, value in changes.items():
        if value is None:
            values.pop(path, None)
        else:
            old = values.get(path)
            values[path] = replace(old, value=value) if old is not None else Value(value, "derived", note="a variant")
    possible = {path: options for path, options in run.possible.items() if path not in changes}
    return build(run.root, run.root_format, run.files, values, possible)


def _estimate(question: Question, chosen: Mapping[str, object]) -> Estimate:
    found = estimate(question.config, setup_of(question, chosen))
    return widened(found, question.rounded) if question.rounded is not None else found


def _estimates(question: Question) -> list[Estimate]:
    """The corners' estimates; corners that are alike, as where nothing is open, are walked once."""
    found: dict[str, Estimate] = {}
    out = []
    for chosen in _corners(question):
        key = repr(sorted(chosen.items()))
        if key not in found:
            found[key] = _estimate(question, chosen)
        out.append(found[key])
    return out


def _corners(question: Question) -> list[dict[str, object]]:
    """The likeliest choice, then the lowest and highest. Options of versions are ordered by what each alone would need.

    Two more where small models break the order: their logits outweigh what LoRA saves, and of thousands of shards each
    holds a whole row.
    """
    likely = {path: options[-1] for path, options in question.options.items()}
    likely.update({path: span[1] for path, span in question.spans.items()})
    low, high = dict(likely), dict(likely)
    for path, span in question.spans.items():
        low[path], high[path] = span[0], span[2]
    for path, options in question.options.items():
        needs = sorted(options, key=lambda option: _estimate(question, {**likely, path: option}).allocated)
        low[path], high[path] = needs[0], needs[-1]
    corners = [likely, low, high]
    if "method" in question.spans:
        corners.append({**high, "method": "lora", "adapter.rank": 64})
    if "parallel.data" in question.spans:
        corners.append({**low, "parallel.data": FEW})
    return corners


def _capacity(run: TrainingRun) -> tuple[int, int] | None:
    memory, high = run.device.memory, run.device.memory_high
    if memory is None:
        return None
    return memory.value, high.value if high is not None else memory.value


def _verdict(low: int, high: int, capacity: tuple[int, int] | None, unbounded: bool) -> Verdict:
    if capacity is None:
        return "unknown"
    if low > capacity[1]:
        return "exceeds"
    if unbounded:
        return "unknown"
    return "tight" if high > capacity[0] else "fits"


def _devices(run: TrainingRun) -> int:
    return max(1, int(run.parallel.data.value) if run.parallel.data is not None else 1)


def _scaled(corner: Estimate, size: int, factor: float) -> Peak:
    """A corner's peak at `size`, times a factor, with the share that lives all the time."""
    share = size / corner.allocated if corner.allocated else 1.0
    return Peak(int(size * factor), int(corner.held * share * factor))


def _varying(run: TrainingRun) -> bool:
    """Whether batches may differ in length."""
    return not any(flag is not None and flag.value for flag in (run.length.packing, run.length.pad_to_max))


def _ledger(question: Question) -> Ledger:
    return ledger(question.config, setup_of(question, _corners(question)[0]))
