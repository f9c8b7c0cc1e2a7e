"""Activation checkpointing in a teaching project whose run fits without it."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, budget, device_words, gib, rule, said


@rule(severity="info", profiles=("teaching",), needs=("device.memory", "memory", "checkpointing.kind"))
def check(view: RunView) -> Iterator[Found]:
    run, memory, kind = view.run, budget(view), view.run.checkpointing.kind
    if memory is None or kind is None or kind.place is None or kind.value == "none":
        return
    length = run.length.max or run.model.shape.positions
    full = {"length.max": length.value, "length.pad_to_max": True} if length is not None else {}
    other = memory.variant({"checkpointing.kind": "none", **full})
    if other is None or other.verdict != "fits" or other.capacity is None:
        return
    yield Found(
        at=kind,
        message=f"`{said(kind)}` without need: keeping every activation takes about {gib(other.device_use.likely)}, "
        f"{device_words(view)} has {gib(other.capacity[0])}",
        help="take it out until a measured step runs out of memory: it makes a step a fifth to a third longer",
        notes=[(run.device.name, "the device")],
    )
