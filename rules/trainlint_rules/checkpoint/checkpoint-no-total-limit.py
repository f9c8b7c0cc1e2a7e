"""Every checkpoint of a full fine-tune is kept, and they add up to more than a disk."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, gib, rule

MUCH = 1 << 40
"""A tebibyte: the disk of a large machine."""
SOME = 200_000_000_000
"""What many volumes have; above it is worth a word where the disk is not known."""
FORMATS = ("hf-trainer", "trl", "llamafactory", "axolotl", "python-script", "shell-launcher")


@rule(severity="warning", needs=("checkpoint.bytes",), formats=FORMATS)
def check(view: RunView) -> Iterator[Found]:
    saved, disk, size = view.run.checkpoint, view.run.launch.disk, view.run.checkpoint.bytes
    unknown = view.root.facts.get("unknown")
    undecided = isinstance(unknown, frozenset) and "checkpoint.total_limit" in unknown
    count = _count(view)
    if saved.total_limit is not None or size is None or count < 2 or undecided or view.root.facts.get("open"):
        return
    total, room = count * size.value, disk.value if disk is not None else SOME
    if total > room:
        spot = saved.every or saved.strategy
        yield Found(
            at=spot if spot is not None and spot.place is not None else (saved.output or size),
            message=f"{count} checkpoints of {gib(size.value)} are kept, {gib(total)} in all"
            + (f", the disk has {gib(room)}" if disk is not None else ""),
            help="set `save_total_limit: 2`, or save the weights alone (`save_only_model: true`)",
            notes=[(disk, "the disk"), (view.run.model.id, "the model")],
            severity="info" if disk is None and total <= MUCH else None,
        )


def _count(view: RunView) -> int:
    """How many checkpoints are surely written."""
    saved, schedule = view.run.checkpoint, view.run.schedule
    every, when = saved.every, saved.strategy.value if saved.strategy is not None else ""
    if when == "epoch" and schedule.epochs is not None and schedule.max_steps is None:
        return int(min(schedule.epochs.value, 1e6))
    certain = schedule.max_steps is not None or view.run.batch.effective is not None
    if when == "steps" and schedule.total_steps is not None and certain:
        step = every.value if every is not None else 500.0
        return int(schedule.total_steps.value / step) if step >= 1 else int(1 / step) if step > 1e-6 else 0
    return 0
