"""Gradients unscaled twice between two updates of the scaler, which raises."""

import re
from collections.abc import Iterator

from trainlint.api import Found, RunView, amp, rule

EVERY = re.compile(r"%\s*(?:[2-9]|\d\d)")
"""A step every so many rounds, by a number in the text."""


@rule(severity="error")
def check(view: RunView) -> Iterator[Found]:
    for fragment in view.fragments:
        calls = fragment.facts.get("amp")
        if not isinstance(calls, amp.Amp):
            continue
        scalers = calls.of("scaler")
        if scalers and not any(scaler.enabled for scaler in scalers):
            continue
        certain = all(scaler.enabled for scaler in scalers)
        seen = set()
        for scope in calls.scopes:
            for event, other, again in (*_twice(scope.events), *_each_round(scope.loops)):
                if event.place in seen or event.via:
                    continue
                seen.add(event.place)
                yield Found(
                    at=event.place,
                    message=f"`{event.owner}.unscale_({event.subject})` a second time before "
                    f"`{event.owner}.update()`, which raises{again}",
                    help="unscale once, on the micro batch that steps" if again else "drop one of the two",
                    notes=[(other.place, "the scaler is updated here" if again else "unscaled here already")],
                    severity="error" if certain and (not again or EVERY.search(again)) else "warning",
                )


def _twice(events: tuple[amp.Event, ...]) -> Iterator[tuple[amp.Event, amp.Event, str]]:
    """Two in a row on one optimizer with no update between, none of them on a branch of its own."""
    done: dict[tuple[str, str], amp.Event] = {}
    for event in events:
        if event.kind == "scaler-update":
            done.clear()
        elif event.kind == "unscale" and event.subject:
            first = done.get((event.owner, event.subject))
            if first is not None and first.condition == event.condition:
                yield event, first, ""
            done[event.owner, event.subject] = event


def _each_round(loops: tuple[amp.Loop, ...]) -> Iterator[tuple[amp.Event, amp.Event, str]]:
    """In every round of a loop, while the update waits for some rounds to go by."""
    for loop in loops:
        own = [item for item in loop.body if isinstance(item, amp.Event)]
        updates = [event for event in own if event.kind == "scaler-update"]
        if not updates or not all("%" in event.condition for event in updates):
            continue
        for event in own:
            if event.kind == "unscale" and "%" not in event.condition:
                yield event, updates[0], f" in rounds where `{updates[0].condition}` does not hold"
