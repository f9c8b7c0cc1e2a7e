"""fp16 autocast around a training step, with nothing that scales the loss."""

import re
from collections.abc import Iterator

from trainlint.api import Found, RunView, amp, rule

SCALES = re.compile(r"scaler|loss_scale|apex|deepspeed|Fabric\(|LightningModule|Accelerator\(", re.IGNORECASE)
"""Words of a file in which something else may scale."""


@rule(severity="warning")
def check(view: RunView) -> Iterator[Found]:
    for fragment in view.fragments:
        calls = fragment.facts.get("amp")
        if not isinstance(calls, amp.Amp) or not calls.of("autocast") or SCALES.search(fragment.document.text):
            continue
        for scope in calls.scopes:
            found = _unscaled(scope.events)
            if found is not None:
                autocast, backward = found
                yield Found(
                    at=backward.place,
                    message="the loss of an fp16 autocast goes backward unscaled: gradients under 6e-8 become zero",
                    help="scale the loss with `torch.amp.GradScaler`, or autocast to bf16",
                    notes=[(autocast.place, "autocast to fp16")],
                )


def _unscaled(events: tuple[amp.Event, ...]) -> tuple[amp.Event, amp.Event] | None:
    """A plain backward pass behind an fp16 autocast, with a plain step behind it."""
    autocast: amp.Event | None = None
    backward: amp.Event | None = None
    for event in events:
        if event.via:
            continue
        match event.kind:
            case "autocast":
                half = event.dtype == "float16" and event.enabled is True and not event.conditional
                autocast, backward = (event if half else None), None
            case "backward" if autocast is not None and not event.conditional:
                backward = event
            case "step" if autocast is not None and backward is not None:
                return autocast, backward
    return None
