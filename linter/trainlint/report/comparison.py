"""Runs, or one with other values, side by side: what each holds at its peak, when that is, and whether it fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from trainlint.report.color import paint
from trainlint.report.fit import VERDICTS
from trainlint.report.ledger import GROUPS, grouped
from trainlint.units import GIB, gib

if TYPE_CHECKING:
    from trainlint.memory.assessment import Assessment
    from trainlint.report.estimate import Estimated

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def text(compared: Sequence[Estimated], color: bool = False) -> str:
    """A table with a column for each; their names stand above it."""
    if not compared:
        return "no training run here\n"
    heads = [LETTERS[at] if at < len(LETTERS) else str(at + 1) for at in range(len(compared))]
    lines = [f"{paint(head, 'bold', color)}  {_name(one)}" for head, one in zip(heads, compared, strict=True)]
    parts = [grouped(one.memory.ledger().entries) if one.memory is not None else {} for one in compared]
    rows: list[tuple[str, list[str]]] = [("GiB at the peak", heads)]
    for name in GROUPS:
        if any(part.get(name) for part in parts):
            rows.append((name, [f"{part[name] / GIB:.2f}" if part else "?" for part in parts]))
    rows.append(("allocated", _cells(compared, lambda found: f"{found.allocated.likely / GIB:.2f}")))
    rows.append(("peak phase", _cells(compared, lambda found: found.peak_phase)))
    rows.append(("device use", _cells(compared, lambda found: f"{found.device_use.likely / GIB:.1f}")))
    rows.append(("  at least", _cells(compared, lambda found: f"{found.device_use.low / GIB:.1f}")))
    rows.append(("  at most", _cells(compared, lambda found: f"{found.device_use.high / GIB:.1f}")))
    rows.append(("device has", _cells(compared, _capacity)))
    verdicts = _cells(compared, lambda found: found.verdict)
    rows.append(("verdict", verdicts))
    width = max(len(name) for name, _ in rows)
    widths = [max(len(cells[at]) for _, cells in rows) for at in range(len(compared))]
    for name, cells in rows:
        padded = [cell.rjust(size) for cell, size in zip(cells, widths, strict=True)]
        if name == "verdict":
            padded = [paint(cell, VERDICTS.get(cell.strip(), "info"), color) for cell in padded]
        lines.append(f"  {name:<{width}}  {'  '.join(padded)}".rstrip())
    return "\n".join(lines) + "\n"


def _name(one: Estimated) -> str:
    run = one.view.run
    model = f"  {run.model.id.value}" if run.model.id is not None else ""
    changes = ", ".join(f"{path}={value}" for path, value in one.variant.items())
    return f"{run.root}{model}" + (f"  with {changes}" if changes else "")


def _cells(compared: Sequence[Estimated], cell: Callable[[Assessment], str]) -> list[str]:
    return [cell(one.memory) if one.memory is not None else "?" for one in compared]


def _capacity(found: Assessment) -> str:
    return gib(found.capacity[0]).removesuffix(" GiB") if found.capacity is not None else "?"
