"""accelerate's clipping on every micro batch inside `accumulate()`."""

from collections.abc import Iterator

from trainlint.api import Document, Edit, Fix, Found, RunView, amp, rule


@rule(severity="warning")
def check(view: RunView) -> Iterator[Found]:
    steps = view.run.batch.accumulation
    if steps is not None and steps.value == 1 and steps.written:
        return
    for fragment in view.fragments:
        calls = fragment.facts.get("amp")
        made = fragment.facts.get("calls")
        if not isinstance(calls, amp.Amp):
            continue
        built = [call for call in made if call.short == "Accelerator"] if isinstance(made, tuple) else []
        if built and not any(
            {"gradient_accumulation_steps", "gradient_accumulation_plugin"} & call.sources.keys() or call.open
            for call in built
        ):
            continue  # accumulates nothing
        for event in calls.of("clip"):
            guarded = "sync_gradients" in event.condition or "%" in event.condition
            if event.owner != "accelerator" or "accumulate" not in event.inside or guarded:
                continue
            owner = event.api.rpartition(".")[0] or "accelerator"
            yield Found(
                at=event.place,
                message="clips on every micro batch of `accumulate()`: sums that are not complete are cut, and in fp16 "
                "the second one raises, for gradients may be unscaled once per step",
                help=f"clip under `if {owner}.sync_gradients:`",
                fix=_guard(event, owner, fragment.document),
            )


def _guard(event: amp.Event, owner: str, document: Document) -> Fix | None:
    """The call under the condition, where it is a statement of its own on one line."""
    place = event.place
    line = document.line(place.line)
    indent = line[: place.column - 1]
    if indent.strip() or place.end_line != place.line or line[place.end_column - 1 :].strip():
        return None
    start = place._replace(end_column=place.column)
    return Fix(
        (Edit(start, f"if {owner}.sync_gradients:\n{indent}    "),), "safe", f"guard by `{owner}.sync_gradients`"
    )
