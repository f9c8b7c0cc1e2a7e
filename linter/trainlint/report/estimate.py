"""What `trainlint estimate` prints: the ledger, the phases and the verdict of each run, and what would fit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trainlint.report import fit, ledger
from trainlint.report.color import paint
from trainlint.report.fit import VERDICTS, interval
from trainlint.report.ledger import compact
from trainlint.run import TrainingRun, Value
from trainlint.units import gib

if TYPE_CHECKING:
    from trainlint.memory.assessment import Assessment
    from trainlint.memory.fit import Fit
    from trainlint.rule import RunView


@dataclass(frozen=True, slots=True)
class Estimated:
    """A run with its memory (None where it can't be said), what would fit where that was asked, and in a variant the
    values by path that differ from the files.
    """

    view: RunView
    memory: Assessment | None
    fit: Fit | None = None
    variant: Mapping[str, object] = field(default_factory=dict)


def json_text(estimated: Sequence[Estimated]) -> str:
    """All runs as JSON (see `report.schema.json`); bytes are integers, per device."""
    return json.dumps({"version": 1, "runs": [_run(one) for one in estimated]}, indent=1) + "\n"


def _run(one: Estimated) -> dict[str, object]:
    run, found = one.view.run, one.memory
    device = run.device
    made: dict[str, object] = {
        "root": run.root,
        "files": list(run.files),
        "model": _bare(run.model.id),
        "device": {"name": _bare(device.name), "count": _bare(device.count), "memory_bytes": _bare(device.memory)},
    }
    if one.variant:
        made["variant"] = {path: _plain(value) for path, value in one.variant.items()}
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
    entries = found.ledger().entries
    made |= {
        "parameters": {"total": found.parameters, "trainable": found.trainable},
        "allocated": interval(found.allocated),
        "device_use": interval(found.device_use),
        "peak_phase": found.peak_phase,
        "phases": dict(found.phases),
        "verdict": found.verdict,
        "groups": ledger.grouped(entries),
        "ledger": [
            {
                "entry": entry.what,
                "dtype": entry.dtype,
                "elements": entry.elements,
                "bytes": entry.nbytes,
                "phases": list(entry.phases),
                "formula": entry.formula,
            }
            for entry in entries
        ],
        "assumptions": list(found.assumptions),
        "unknown": list(found.unknown),
    }
    if one.fit is not None:
        made["fit"], made["frees_most"] = fit.objects(one.view, one.fit)
    return made


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def unknown_reason(run: TrainingRun) -> str:
    """Why nothing can be said of a run's memory."""
    if run.model.config is not None:
        return "the memory of this architecture"
    if run.model.id is not None:
        return f"the shape of `{run.model.id.value}`: name a local folder with its config.json"
    return "the model"


def _bare(value: Value[str] | Value[int] | None) -> object:
    return None if value is None else value.value


def text(estimated: Sequence[Estimated], color: bool = False, blocks: bool = True) -> str:
    """All runs as tables; `blocks`: bars may be drawn in block characters."""
    made = ["\n".join(_lines(one, color, blocks)) + "\n" for one in estimated]
    return "\n".join(made) if made else "no training run here\n"


def _lines(one: Estimated, color: bool, blocks: bool) -> Iterator[str]:
    run, found = one.view.run, one.memory
    model = f"  {run.model.id.value}" if run.model.id is not None else ""
    changes = ", ".join(f"{path}={value}" for path, value in one.variant.items())
    yield paint(run.root, "bold", color) + model + (f"  with {changes}" if changes else "")
    if found is None:
        yield f"  no estimate: unknown is {unknown_reason(run)}"
        return
    trained = "all" if found.trainable == found.parameters else compact(found.trainable)
    yield f"  {compact(found.parameters)} parameters, {trained} of them trained"
    yield from ledger.table(found)
    yield from ledger.bars(found, found.capacity[1] if found.capacity is not None else None, color, blocks)
    yield _verdict(run, found, color)
    yield from (f"  assumed: {said}" for said in found.assumptions)
    yield from (f"  unknown: {ledger.open_words(run, said)}" for said in found.unknown)
    if one.fit is not None:
        yield from fit.text(one.view, found, one.fit, color) if _lacking(found) else iter(["  it fits as it is"])


def _lacking(found: Assessment) -> bool:
    """Whether there is something to search for."""
    return found.capacity is None or found.verdict != "fits"


def _verdict(run: TrainingRun, found: Assessment, color: bool) -> str:
    used = found.device_use
    need = f"about {gib(used.likely)} on the device ({gib(used.low)} to {gib(used.high)})"
    if found.capacity is None:
        return f"  {need}; no device is named: `--device`, or `# trainlint: device=NAME` in the file"
    count, name = run.device.count, run.device.name.value if run.device.name is not None else "the device"
    low, high = found.capacity
    size = gib(high) if low == high else f"{gib(low)} to {gib(high)}"
    each = "each " if count is not None and count.value > 1 else ""
    verdict = "no verdict" if found.verdict == "unknown" else found.verdict
    return f"  {paint(verdict, VERDICTS[found.verdict], color)}: {need}, {each}{name} has {size}"
