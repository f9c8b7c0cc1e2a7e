"""Trained weights in fp16 under a loss scaler, which refuses to unscale fp16 gradients."""

import re
from collections.abc import Iterator

from trainlint.api import Found, Fragment, RunView, Value, amp, rule

LIFTS = re.compile(r"\.float\(|float32|cast_training_params")
"""Words of a script that lifts weights itself."""
FORMATS = ("hf-trainer", "trl", "python-script", "shell-launcher")
HELP = "hold the weights in float32 (autocast computes in fp16 all the same), or train in bf16"


@rule(severity="error", formats=FORMATS)
def check(view: RunView) -> Iterator[Found]:
    scripts = [fragment for fragment in view.fragments if fragment.format == "python-script"]
    if any(LIFTS.search(fragment.document.text) for fragment in scripts):
        return
    for fragment in scripts:
        yield from _halved(fragment)
    run = view.run
    scaled, kind = run.precision.grad_scaler, run.sharding.kind
    if scaled is None or not scaled.value or (kind and kind.value not in ("none", "device-map")):
        return
    dtype = _trained(view)
    flag = run.precision.fp16 or run.precision.mixed
    spot = next((value for value in (dtype, flag) if value is not None and value.place is not None), None)
    if dtype is None or dtype.value != "float16" or spot is None:
        return
    yield Found(
        at=spot,
        message=f"`{spot.key}: {spot.raw}`: what trains is held in float16 and the loss is scaled: "
        "`Attempting to unscale FP16 gradients`",
        help=HELP,
        notes=[(flag if flag is not spot else None, "the loss is scaled here")],
    )


def _trained(view: RunView) -> Value[str] | None:
    """The dtype of what trains, where it is known."""
    run = view.run
    method = run.method.value if run.method else None
    if method == "full":
        return run.precision.weights
    if method == "lora" and run.adapter.modules_to_save and run.adapter.modules_to_save.value:
        return run.precision.weights  # PEFT copies these modules in the base's dtype
    return run.adapter.dtype if method == "lora" else None


def _halved(fragment: Fragment) -> Iterator[Found]:
    """`model.half()` before an optimizer over the model's parameters that a scaler steps."""
    events, calls = fragment.facts.get("amp"), fragment.facts.get("calls")
    if not isinstance(events, amp.Amp) or not isinstance(calls, tuple):
        return
    scalers, steps = events.of("scaler"), events.of("scaler-step", "unscale")
    if not steps or not scalers or not all(scaler.enabled for scaler in scalers):
        return
    trained = {call.first.partition(".parameters()")[0] for call in calls if ".parameters()" in call.first}
    for call in calls:
        half = call.short == "half" or (call.short == "to" and "float16" in _dtypes(call))
        if half and not call.conditional and call.receiver in trained and call.place < steps[-1].place:
            yield Found(
                at=call.place,
                message=f"`{call.receiver}` becomes float16 and its loss is scaled: "
                "`Attempting to unscale FP16 gradients`",
                help=HELP,
                notes=[(steps[0].place, "the scaler unscales here")],
            )


def _dtypes(call: object) -> set[object]:
    nodes = [*getattr(call, "positional", ()), getattr(call, "keywords").get("dtype")]  # noqa: B009
    return {getattr(node, "value", None) for node in nodes}
