"""Gradients are clipped while the loss scale is still in them."""

from collections.abc import Iterator

from trainlint.api import Edit, Fix, Found, RunView, amp, rule

OWN_WAYS = ("accelerator", "fabric", "engine")
"""Owners whose own clip method takes the scale out first."""


@rule(severity="error")
def check(view: RunView) -> Iterator[Found]:
    for fragment in view.fragments:
        calls = fragment.facts.get("amp")
        if not isinstance(calls, amp.Amp):
            continue
        scalers = calls.of("scaler")
        if scalers and all(scaler.enabled is False for scaler in scalers):
            continue
        certain = all(scaler.enabled for scaler in scalers)
        seen = set()
        for scope in calls.scopes:
            for clip, backward, step in _clipped(scope.events):
                if clip.place in seen:
                    continue
                seen.add(clip.place)
                unscale = f"{step.owner}.unscale_({step.subject})"
                line = fragment.document.line(clip.place.line)
                start = clip.place._replace(end_line=clip.place.line, end_column=clip.place.column)
                indent = line[: clip.place.column - 1]
                edit = Edit(start, f"{unscale}\n{indent}")
                yield Found(
                    at=clip.place,
                    message="gradients are clipped while they are scaled: the norm is that of the loss scale, "
                    "and nearly every step is cut down",
                    help=f"call `{unscale}` before it",
                    notes=[(backward.place, "scaled here"), (step.place, "stepped here")],
                    fix=None if indent.strip() else Fix((edit,), "unsafe", f"insert `{unscale}`"),
                    severity="error" if certain else "warning",
                )


def _clipped(events: tuple[amp.Event, ...]) -> Iterator[tuple[amp.Event, amp.Event, amp.Event]]:
    """Each clip between a scaled backward pass and the scaler's step with nothing that unscales, with both."""
    backward: amp.Event | None = None
    clips: list[amp.Event] = []
    for event in events:
        match event.kind:
            case "scaled-backward":
                backward, clips = event, []
            case "unscale":
                backward, clips = None, []
            case "clip" if backward is not None and event.owner not in OWN_WAYS and not _apart(event, backward):
                clips.append(event)
            case "scaler-step" if backward is not None:
                yield from ((clip, backward, event) for clip in clips if not _apart(clip, event))
                clips = []


def _apart(one: amp.Event, other: amp.Event) -> bool:
    """Whether the two stand on branches that exclude each other."""
    left, right = one.condition.split(" and "), other.condition.split(" and ")
    return any(f"not ({text})" in right for text in left if text) or any(
        f"not ({text})" in left for text in right if text
    )
