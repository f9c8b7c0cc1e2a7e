"""How long a run trains: optimizer steps in all, where `max_steps` or the data say so."""

from __future__ import annotations

from math import ceil, isfinite

from trainlint.formats import Draft
from trainlint.run import Value

GENERATING = frozenset(("pretrain", "grpo", "ppo", "rloo", "online-dpo", "gkd", "xpo", "nash-md"))
"""Objectives whose samples are not the rows of the data: text that is cut in blocks, completions."""


def add_duration(draft: Draft) -> None:
    """Derive `schedule.total_steps`: the steps asked for, or at most as many as the rows give.

    Rows that are held back or dropped and processes that are not known make the run shorter still; where packing or
    generation decide how many samples there are, nothing is said.
    """
    asked = draft.values.get("schedule.max_steps")
    if asked is not None:
        draft.values["schedule.total_steps"] = Value(
            asked.value, "derived", unit="step", note=f"`{asked.key}`" if asked.key else ""
        )
        return
    epochs, rows, batch = draft.get("schedule.epochs"), _rows(draft), _batch(draft)
    if not isinstance(epochs, int | float) or not isfinite(epochs) or rows is None or batch is None:
        return
    if draft.get("length.packing") is True or draft.get("objective") in GENERATING or draft.get("batch.auto") is True:
        return
    steps = ceil(epochs * ceil(rows / batch))
    note = f"{rows} samples, {batch} a step, {epochs:g} epoch{'s' if epochs != 1 else ''}"
    draft.derive("schedule.total_steps", max(1, steps), note, "step")


def _rows(draft: Draft) -> int | None:
    """The most samples that the data can give: those known, those taken of each data set."""
    names, limit, rows = draft.get("data.names"), draft.get("data.limit"), draft.values.get("data.rows")
    sets = len(names) if isinstance(names, tuple) else 0
    most = [limit * sets] if isinstance(limit, int) and sets else []
    if rows is not None and isinstance(rows.value, int) and (rows.written or sets <= 1):
        most.append(rows.value)
    return min(most, default=None)


def _batch(draft: Draft) -> int | None:
    """The fewest samples of a step; processes that are not known are taken as one."""
    known = draft.get("batch.effective")
    if isinstance(known, int):
        return known if known > 0 else None
    micro, times = draft.get("batch.micro"), draft.get("batch.accumulation")
    return micro * times if isinstance(micro, int) and isinstance(times, int) and micro * times > 0 else None
