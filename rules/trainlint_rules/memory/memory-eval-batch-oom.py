"""Training fits the device, and the first evaluation, in larger batches, does not."""

from collections.abc import Iterator

from trainlint.api import (
    Found,
    RunView,
    assumed,
    at_length,
    budget,
    change_words,
    chosen_length,
    device_words,
    firm,
    gib,
    known,
    rule,
    said,
)

SMALL = 2
"""Batches of evaluation up to this many times the micro batch are let be: there is no backward pass."""


@rule(severity="warning", needs=("device.memory", "memory", "evaluation.batch", "batch.micro"))
def check(view: RunView) -> Iterator[Found]:
    run, memory = view.run, budget(view)
    batch, micro = run.evaluation.batch, run.batch.micro
    if memory is None or memory.capacity is None or batch is None or micro is None:
        return
    if known(run.evaluation.strategy, "no") == "no" or batch.value <= SMALL * micro.value or micro.value < 1:
        return
    room = memory.capacity[1]
    full = at_length(view, memory)
    steps = {"evaluation.steps": 1, "evaluation.gather_logits": False}
    evaluated = full.variant({**steps, "evaluation.batch": batch.value})
    smaller = full.variant({**steps, "evaluation.batch": micro.value})
    if evaluated is None or smaller is None or full.device_use.likely > room or evaluated.peak_phase != "evaluation":
        return
    if firm(evaluated) <= room or smaller.device_use.likely > room:
        return
    eval_batch = run.batch.eval or batch
    written = eval_batch.place is not None
    here = f"`{said(eval_batch)}`" if written else f"the default of {batch.value} samples a device"
    words = change_words(view, {"batch.eval": micro.value})
    yield Found(
        at=eval_batch if written else run.evaluation.strategy or micro,
        message=f"evaluation with {here} needs about {gib(evaluated.device_use.likely)}, training in batches of "
        f"{micro.value} about {gib(full.device_use.likely)}: the run ends at the first evaluation, "
        f"{device_words(view)} has {gib(room)}{assumed(memory)}",
        help=f"set {words or f'an evaluation batch of {micro.value}'} (about {gib(smaller.device_use.likely)})",
        notes=[(micro, "the training's batch"), (run.device.name, "the device")],
        severity=None if chosen_length(view) else "info",
    )
