"""The scaler steps in a loop and is never updated."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, amp, rule


@rule(severity="error")
def check(view: RunView) -> Iterator[Found]:
    for fragment in view.fragments:
        calls = fragment.facts.get("amp")
        if not isinstance(calls, amp.Amp) or calls.of("scaler-update") or ".update(" in fragment.document.text:
            continue
        scalers = calls.of("scaler")
        if not scalers or not all(scaler.enabled for scaler in scalers):
            continue
        for scope in calls.scopes:
            step = next((event for loop in scope.loops for event in loop.events if event.kind == "scaler-step"), None)
            if step is not None and not step.via:
                yield Found(
                    at=step.place,
                    message=f"`{step.owner}.step({step.subject})` without `{step.owner}.update()`: "
                    "the second step raises",
                    help=f"call `{step.owner}.update()` after it",
                )
                break
