"""Micro batches whose losses are summed over accumulation, so that the gradient grows with their number."""

import re
from collections.abc import Iterator

from trainlint.api import Found, Fragment, RunView, amp, rule

BACKWARD = ("backward", "scaled-backward", "manual-backward")
EVERY = re.compile(r"%\s*(?!1\b)([\w.]*accum[\w.]*|[2-9]|\d\d+)", re.IGNORECASE)
SCALED = re.compile(
    r"reduction\s*=\s*['\"](sum|none)|\.grad\b[^\n]*(/=|\*=|div_|mul_)|num_items|num_tokens|scale_grad|deepspeed"
    r"|Accelerator\("
)
"""Words of a file in which the scale may be set right elsewhere."""


@rule(severity="warning")
def check(view: RunView) -> Iterator[Found]:
    for fragment in view.fragments:
        calls = fragment.facts.get("amp")
        if not isinstance(calls, amp.Amp) or SCALED.search(fragment.document.text):
            continue
        seen = set()
        for scope in calls.scopes:
            for loop in scope.loops:
                own = [event for event in loop.body if isinstance(event, amp.Event) and not event.via]
                found = _summed(own, fragment)
                if found is None or found[0].place in seen:
                    continue
                backward, step, count = found
                seen.add(backward.place)
                clips = any(event.kind == "clip" for event in own)
                yield Found(
                    at=backward.place,
                    message=f"the losses of `{count}` micro batches are added up undivided: the gradient is so many "
                    "times that of one batch of the same size",
                    help=f"divide the loss by `{count}` before its backward pass",
                    notes=[(step.place, "stepped here")],
                    severity="info" if _adam(fragment) and not clips else "warning",
                )


def _summed(own: list[amp.Event], fragment: Fragment) -> tuple[amp.Event, amp.Event, str] | None:
    """An undivided backward pass in every round, with the step and the clearing in every so-manieth."""
    steps = [event for event in own if event.kind in ("step", "scaler-step")]
    clears = [event for event in own if event.kind == "zero-grad"]
    if len(steps) != 1 or not clears or not all(clear.conditional for clear in clears):
        return None
    every = EVERY.search(steps[0].condition)
    for event in own:
        if every is None or event.kind not in BACKWARD or event.conditional or event.divided is not False:
            continue
        name = re.escape(event.subject)
        if "accumulate" in event.inside or re.search(rf"\b{name}\s*(\*=|=\s*{name}\s*\*)", fragment.document.text):
            continue
        return event, steps[0], every[1]
    return None


def _adam(fragment: Fragment) -> bool:
    """Whether all optimizers of the file are Adam's kind, whose step does not depend on the gradient's scale."""
    calls = fragment.facts.get("calls")
    made = [call.short for call in calls if "parameters" in call.first] if isinstance(calls, tuple) else []
    return bool(made) and all("Adam" in name or "Lion" in name for name in made)
