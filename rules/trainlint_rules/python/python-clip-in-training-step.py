"""Gradients clipped in a Lightning `training_step`, which runs before their backward pass."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, amp, rule

BACKWARD = ("backward", "scaled-backward", "manual-backward")


@rule(severity="error")
def check(view: RunView) -> Iterator[Found]:
    for fragment in view.fragments:
        calls, assigned = fragment.facts.get("amp"), fragment.facts.get("assignments")
        if not isinstance(calls, amp.Amp) or "automatic_optimization" in fragment.document.text:
            continue
        if isinstance(assigned, tuple) and any(one.target.endswith("automatic_optimization") for one in assigned):
            continue
        for scope in calls.scopes:
            own = scope.name.endswith(".training_step") and any(
                base.endswith("LightningModule") for base in scope.bases
            )
            if not own or any(event.kind in BACKWARD for event in scope.events):
                continue
            for event in scope.events:
                if event.kind == "clip" and not event.via:
                    yield Found(
                        at=event.place,
                        message="clips in `training_step`: Lightning clears the gradients and runs backward after it, "
                        "so nothing is clipped",
                        help="set `gradient_clip_val` in the Trainer, or override `configure_gradient_clipping`",
                    )
