"""Mixed precision in a teaching project whose model trains in float32 on the device just as well."""

from collections.abc import Iterator

from trainlint.api import Found, Place, RunView, Value, amp, budget, device_words, gib, rule, said

SWITCHES = ("precision.bf16", "precision.fp16", "precision.mixed")
"""Where people ask for it, in the order of what is best pointed at."""
FLOAT32 = {
    "precision.weights": "float32",
    "precision.compute": "float32",
    "precision.autocast": False,
    "precision.grad_scaler": False,
    "precision.gradients": None,
    "precision.master": None,
    "precision.moments": None,
}


@rule(severity="info", profiles=("teaching",), needs=("device.memory", "memory"))
def check(view: RunView) -> Iterator[Found]:
    run, memory = view.run, budget(view)
    switch = next((value for path in SWITCHES if (value := run.get(path)) is not None and _on(value)), None)
    spot = switch if switch is not None else _autocast(view)
    if memory is None or run.quantization.bits is not None or spot is None:
        return
    length = run.length.max or run.model.shape.positions
    full = {"length.max": length.value, "length.pad_to_max": True} if length is not None else {}
    other = memory.variant({**FLOAT32, **full})
    if other is None or other.verdict != "fits" or other.capacity is None:
        return
    what = f"`{said(switch)}`" if switch is not None else "autocast"
    yield Found(
        at=spot,
        message=f"{what} in a teaching project, where float32 has room: about {gib(other.device_use.likely)}, "
        f"{device_words(view)} has {gib(other.capacity[0])}",
        help="start in float32, and turn it on once loss, memory and time of that run are known",
        notes=[(run.device.name, "the device")],
    )


def _on(value: Value[object]) -> bool:
    return value.place is not None and value.value in (True, "bf16", "fp16")


def _autocast(view: RunView) -> Place | None:
    """Where a script enters autocast for certain."""
    calls = view.root.facts.get("amp")
    if not isinstance(calls, amp.Amp):
        return None
    return next((event.place for event in calls.of("autocast") if event.enabled), None)
