"""What `trainlint estimate` prints: the ledger, the phases and the verdict of each run."""

from __future__ import annotations

import json
from collections.abc import Sequence

from trainlint.memory.assessment import Assessment, Interval
from trainlint.report.color import paint
from trainlint.run import TrainingRun, Value
from trainlint.units import GIB, gib

BAR = 30
"""Characters of the longest bar."""
VERDICTS = {"fits": "help", "tight": "warning", "exceeds": "error", "unknown": "info"}
"""How a verdict is coloured."""
Assessed = tuple[TrainingRun, Assessment | None]


def json_text(assessed: Sequence[Assessed]) -> str:
    """All runs as JSON (see `report.schema.json`); bytes are integers, per device."""
    return json.dumps({"version": 1, "runs": [_run(run, found) for run, found in assessed]}, indent=1) + "\n"


def _run(run: TrainingRun, found: Assessment | None) -> dict[str, object]:
    device = run.device
    made: dict[str, object] = {
        "root": run.root,
        "files": list(run.files),
        "model": _bare(run.model.id),
        "device": {"name": _bare(device.name), "count": _bare(device.count), "memory_bytes": _bare(device.memory)},
    }
    if found is None:
        nothing = {"low": None, "likely": None, "high": None}
        return made | {
            "parameters": {"total": _bare(run.model.parameters), "trainable": None},
            "allocated": nothing,
            "device_use": nothing,
            "peak_phase": None,
            "phases": {},
            "verdict": "unknown",
            "ledger": [],
            "assumptions": [],
            "unknown": [unknown_reason(run)],
        }
    return made | {
        "parameters": {"total": found.parameters, "trainable": found.trainable},
        "allocated": _interval(found.allocated),
        "device_use": _interval(found.device_use),
        "peak_phase": found.peak_phase,
        "phases": dict(found.phases),
        "verdict": found.verdict,
        "ledger": [
            {
                "entry": entry.what,
                "dtype": entry.dtype,
                "elements": entry.elements,
                "bytes": entry.nbytes,
                "phases": list(entry.phases),
                "formula": entry.formula,
            }
            for entry in found.ledger().entries
        ],
        "assumptions": list(found.assumptions),
        "unknown": list(found.unknown),
    }


def unknown_reason(run: TrainingRun) -> str:
    """Why nothing can be said of a run's memory."""
    if run.model.config is not None:
        return "the memory of this architecture"
    if run.model.id is not None:
        return f"the shape of `{run.model.id.value}`: name a local folder with its config.json"
    return "the model"


def _bare(value: Value[str] | Value[int] | None) -> object:
    return None if value is None else value.value


def _interval(found: Interval) -> dict[str, int]:
    return {"low": found.low, "likely": found.likely, "high": found.high}


def text(assessed: Sequence[Assessed], color: bool = False) -> str:
    """All runs as tables."""
    return "\n".join(_table(run, found, color) for run, found in assessed) + (
        "" if assessed else "no training run here\n"
    )


def _table(run: TrainingRun, found: Assessment | None, color: bool) -> str:
    head = paint(run.root, "bold", color) + (f"  {run.model.id.value}" if run.model.id is not None else "")
    if found is None:
        return f"{head}\n  no estimate: unknown is {unknown_reason(run)}\n"
    lines = [head, f"  {found.parameters / 1e9:.3f} B parameters, {found.trainable / 1e6:,.1f} M trainable"]
    entries = sorted(found.ledger().entries, key=lambda entry: -entry.nbytes)
    width = max((len(entry.what) for entry in entries), default=0)
    for entry in entries:
        size = f"{entry.nbytes / GIB:9.3f} GiB"
        lines.append(f"  {entry.what:<{width}}  {entry.dtype:<9} {size}  {entry.formula}")
    total = sum(entry.nbytes for entry in entries)
    lines.append(f"  {'peak, in the ' + found.peak_phase + ' phase':<{width}}  {'':<9} {total / GIB:9.3f} GiB")
    most = max(found.phases.values(), default=1)
    for phase, peak in found.phases.items():
        bar = "█" * max(1, round(BAR * peak / most))
        lines.append(f"    {phase:<10} {gib(peak):>10}  {paint(bar, 'dim', color)}")
    used = found.device_use
    lines.append(
        f"  on the device: {gib(used.likely)} ({gib(used.low)} to {gib(used.high)})" + _against(run, found, color)
    )
    lines += [f"  assumed: {said}" for said in found.assumptions]
    lines += [f"  unknown: {said}" for said in found.unknown]
    return "\n".join(lines) + "\n"


def _against(run: TrainingRun, found: Assessment, color: bool) -> str:
    if found.capacity is None:
        return "; no device named"
    name = run.device.name.value if run.device.name is not None else "the device"
    low, high = found.capacity
    size = gib(high) if low == high else f"{gib(low)} to {gib(high)}"
    return f"; {name} has {size}: " + paint(found.verdict, VERDICTS[found.verdict], color)
