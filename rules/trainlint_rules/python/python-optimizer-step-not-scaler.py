"""The loss is scaled, and the optimizer steps without its scaler."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, amp, rule


@rule(severity="error")
def check(view: RunView) -> Iterator[Found]:
    for fragment in view.fragments:
        calls = fragment.facts.get("amp")
        if not isinstance(calls, amp.Amp) or calls.of("unscale", "scaler-step", "scaler-update"):
            continue
        scalers = calls.of("scaler")
        if not scalers or not all(scaler.enabled for scaler in scalers):
            continue
        for scope in calls.scopes:
            backward: amp.Event | None = None
            for event in scope.events:
                if event.kind == "scaled-backward" and not event.conditional:
                    backward = event
                elif event.kind == "step" and backward is not None and not event.conditional and not event.via:
                    yield Found(
                        at=event.place,
                        message=f"the loss is scaled, and `{event.owner}.step()` takes the gradients as they are, some "
                        "65536 times too large",
                        help=f"call `scaler.step({event.owner})` and `scaler.update()` in its place",
                        notes=[(backward.place, "scaled here")],
                    )
                    break
