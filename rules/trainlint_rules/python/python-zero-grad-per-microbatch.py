"""Gradients cleared on every micro batch while the optimizer steps only on some."""

import re
from collections.abc import Iterator

from trainlint.api import Found, RunView, amp, rule

BACKWARD = ("backward", "scaled-backward", "engine-backward", "manual-backward")
WAITS = re.compile(r"%(?!\s*1\b)|accum|should_step|is_update|do_step|sync", re.IGNORECASE)
"""Conditions under which a step waits for several micro batches."""


@rule(severity="error")
def check(view: RunView) -> Iterator[Found]:
    for fragment in view.fragments:
        calls = fragment.facts.get("amp")
        if not isinstance(calls, amp.Amp):
            continue
        seen = set()
        for scope in calls.scopes:
            for loop in scope.loops:
                found = _every_round(loop) or _inner(loop)
                if found is None or found[0].place in seen or found[0].via:
                    continue
                clear, step = found
                seen.add(clear.place)
                when = f"under `{step.condition}`" if WAITS.search(step.condition) else "after the loop"
                yield Found(
                    at=clear.place,
                    message=f"gradients are cleared for every micro batch, the optimizer steps {when}: "
                    "only the last micro batch counts",
                    help=f"move it behind `{step.owner}.step(…)`, under the same condition",
                    notes=[(step.place, "stepped here")],
                )


def _every_round(loop: amp.Loop) -> tuple[amp.Event, amp.Event] | None:
    """Clear and backward in every round, step in some."""
    own = [event for event in loop.body if isinstance(event, amp.Event)]
    steps = [event for event in own if event.kind in ("step", "scaler-step")]
    back = [event for event in own if event.kind in BACKWARD and not event.conditional]
    if not back or not steps or not all(WAITS.search(step.condition) for step in steps):
        return None
    return _cleared(own, steps)


def _inner(loop: amp.Loop) -> tuple[amp.Event, amp.Event] | None:
    """Clear and backward in an inner loop over micro batches, step behind it."""
    for item, behind in zip(loop.body, loop.body[1:], strict=False):
        if not isinstance(item, amp.Loop) or not isinstance(behind, amp.Event):
            continue
        if not re.search(r"range\(.*(accum|micro)", item.over, re.IGNORECASE):
            continue
        own = [event for event in item.body if isinstance(event, amp.Event)]
        steps = [event for event in loop.body if isinstance(event, amp.Event) and "step" in event.kind]
        inside = any("step" in event.kind for event in own)
        if steps and not inside and any(event.kind in BACKWARD for event in own):
            return _cleared(own, steps)
    return None


def _cleared(own: list[amp.Event], steps: list[amp.Event]) -> tuple[amp.Event, amp.Event] | None:
    for clear in own:
        if clear.kind != "zero-grad" or clear.conditional or "accumulate" in clear.inside:
            continue
        for step in steps:
            optimizer = step.subject if step.kind == "scaler-step" else step.owner
            alone = len({one.subject or one.owner for one in steps}) == 1
            if clear.owner == optimizer or (alone and "model" in clear.owner.lower()):
                return clear, step
    return None
