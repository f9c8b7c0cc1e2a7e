"""What would fit, as `trainlint estimate --fit` says it: changes in the user's keys, what they come to, their price."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.advice import budget, change_keys, said_in
from trainlint.memory.fit import likely_fits
from trainlint.report.color import paint
from trainlint.units import GIB, gib

if TYPE_CHECKING:
    from trainlint.memory.assessment import Assessment, Interval
    from trainlint.memory.fit import Change, Fit
    from trainlint.rule import RunView

VERDICTS = {"fits": "help", "tight": "warning", "exceeds": "error", "unknown": "info"}
"""How a verdict is coloured."""
WIDEST = 60
"""Characters of the column of changes at most."""
Line = tuple[str, str]
"""A key with its value, and on the first line of a knob what it costs."""


def objects(view: RunView, fit: Fit) -> tuple[list[dict[str, object]], dict[str, object] | None]:
    """The changes as objects of the report, those that fit first, and the one that frees most."""
    changes = [*fit.changes, *fit.singles, *([fit.least] if fit.least is not None else [])]
    most = None
    if fit.most is not None:
        most = {"changes": _plain(view, fit.most), "bytes": fit.frees}
    return [_object(view, change) for change in changes], most


def _object(view: RunView, change: Change) -> dict[str, object]:
    return {
        "changes": _plain(view, change),
        "allocated": interval(change.memory.allocated),
        "device_use": interval(change.memory.device_use),
        "verdict": change.memory.verdict,
        "cost": change.cost,
        "keeps_training": change.keeps,
    }


def interval(found: Interval) -> dict[str, int]:
    """Bytes as an object of the report."""
    return {"low": found.low, "likely": found.likely, "high": found.high}


def _plain(view: RunView, change: Change) -> dict[str, object]:
    """The user's keys with plain values; by path of the run what is set elsewhere."""
    found: dict[str, object] = {}
    for _, values in change.parts:
        pairs = change_keys(view, values)
        if pairs is None:
            found.update(values)
        else:
            found.update((key, _value(text)) for key, text in pairs)
    return found


def _value(text: str) -> object:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdigit() else text.strip('"')


def text(view: RunView, found: Assessment, fit: Fit, color: bool) -> Iterator[str]:
    """A table: the changes that fit, and below them what is not enough alone."""
    if found.capacity is None:
        yield "  what would fit: no device is named"
        return
    if budget(view) is None:
        yield "  what would fit: nothing is searched where a device holds a part of the layers or of each matrix"
        return
    if not fit.changes and not fit.singles:
        yield "  what would fit: nothing that can be changed here lowers it"
        return
    blocks = [(change, list(_lines(view, change))) for change in (*fit.changes, *fit.singles)]
    width = max(len(key) for _, lines in blocks for key, _ in lines)
    likely = likely_fits(found)
    if likely:
        yield "  it is likely to fit as it is, what is open above decides"
    head = "what would fit for certain" if likely else "what would fit"
    head = head if fit.changes else "nothing fits for certain; alone" if likely else "nothing fits; alone"
    width = min(max(width + 2, len(head)), WIDEST)
    yield f"  {head:<{width}}      GiB  verdict  what it costs"
    for number, (change, lines) in enumerate(blocks):
        if number == len(fit.changes) and fit.changes:
            yield "  not certain alone" if likely else "  not enough alone"
        size, verdict = f"{change.likely / GIB:9.1f}", f"{change.memory.verdict:<7}"
        for at, (key, cost) in enumerate(lines):
            left = f"    {key:<{width - 2}}"
            middle = f"{size}  {paint(verdict, VERDICTS[change.memory.verdict], color)}" if at == 0 else " " * 18
            yield f"{left}{middle}  {cost}".rstrip()
    if fit.most is not None:
        yield f"  frees most: {said_in(view, fit.most).removeprefix('set ')}, {gib(fit.frees)}"
    if fit.least is not None:
        everything = said_in(view, fit.least).replace("set `", "`")
        yield f"  all that trains the same, {everything}: still about {gib(fit.least.likely)}"


def _lines(view: RunView, change: Change) -> Iterator[Line]:
    for knob, values in change.parts:
        pairs = change_keys(view, values)
        keys = [f"{key}: {text}" for key, text in pairs] if pairs is not None else [knob.phrase]
        for at, key in enumerate(dict.fromkeys(keys)):
            yield key, knob.cost if at == 0 else ""
