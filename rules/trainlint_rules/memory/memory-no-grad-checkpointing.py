"""All activations are kept, which does not fit; recomputing them alone would."""

from collections.abc import Iterator

from trainlint.api import (
    Found,
    RunView,
    assumed,
    at_length,
    budget,
    change_words,
    chosen_length,
    device_words,
    devices,
    firm,
    gib,
    known,
    rule,
    said,
)

LIKELY_SHARE = 0.92
"""Share of the device that the changed run may be likely to fill."""


@rule(severity="warning", needs=("device.memory", "memory", "checkpointing.kind"))
def check(view: RunView) -> Iterator[Found]:
    run, memory = view.run, budget(view)
    kind = run.checkpointing.kind
    if memory is None or memory.capacity is None or kind is None or kind.value != "none":
        return
    room, most = _usable(view) or memory.capacity
    full = at_length(view, memory)
    if firm(full) <= most or not (chosen_length(view) or memory.device_use.low > most):
        return
    other = full.variant({"checkpointing.kind": "full"})
    words = change_words(view, {"checkpointing.kind": "full"})
    share = LIKELY_SHARE if _usable(view) is None else 1.0
    if other is None or words is None or other.device_use.likely > share * room:
        return
    written = kind.place is not None
    micro = run.batch.micro
    spot = next((value for value in (micro, run.length.max, run.model.id) if value is not None and value.place), kind)
    if not written and spot.place is None:
        return
    how = f"`{said(kind)}` keeps" if written else "without activation checkpointing the run keeps"
    yield Found(
        at=kind if written else spot,
        message=f"{how} every activation for the backward pass: about {gib(full.device_use.likely)}, with {words} "
        f"about {gib(other.device_use.likely)}, {device_words(view)} {_has(view, most)}{assumed(full)}",
        help=f"set {words}: a step takes a fifth to a third longer",
        notes=[(run.device.name, "the device")],
        severity=None if written else "info",
    )


def _usable(view: RunView) -> tuple[int, int] | None:
    """What macOS lets the GPU use of a Mac's memory."""
    found = devices.find(known(view.run.device.name) or "")
    return found.usable if found is not None else None


def _has(view: RunView, most: int) -> str:
    return f"may use {gib(most)}" if _usable(view) else f"has {gib(most)}"
