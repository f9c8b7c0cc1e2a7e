"""The peak is read between backward pass and optimizer step, where Adam has not yet made its moments."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, amp, calls_of, rule

BACKWARD = ("backward", "scaled-backward", "accelerator-backward", "manual-backward")
STEP = ("step", "scaler-step")


@rule(severity="info", profiles=("teaching",), formats=("python-script",))
def check(view: RunView) -> Iterator[Found]:
    for fragment in view.fragments:
        calls = fragment.facts.get("amp")
        reads = calls_of(fragment, "max_memory_allocated")
        if not isinstance(calls, amp.Amp) or not reads:
            continue
        resets = [call.place.line for call in calls_of(fragment, "reset_peak_memory_stats")]
        for scope in calls.scopes:
            for loop in scope.loops:
                events = [item for item in loop.body if isinstance(item, amp.Event)]
                backward = next((event for event in events if event.kind in BACKWARD), None)
                step = next((event for event in events if event.kind in STEP), None)
                if backward is None or step is None or backward.via or step.via:
                    continue
                begins = [line for line in resets if loop.place.line < line < backward.place.line]
                for read in reads:
                    if begins and backward.place.line < read.place.line < step.place.line:
                        yield Found(
                            at=read.place,
                            message="a peak that is set back in each step and read before the optimizer's misses "
                            "what the step itself needs",
                            help=f"read it after `{step.owner or 'optimizer'}.step()`",
                            notes=[(step.place, "the step")],
                        )
