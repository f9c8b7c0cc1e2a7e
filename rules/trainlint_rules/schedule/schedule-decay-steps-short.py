"""The schedule's own length is not that of the run."""

from collections.abc import Iterator

from trainlint.api import Found, Fragment, RunView, Scalar, Sequence, rule

PLACES = {"cosine_decay": (1, 2), "linear_schedule": (2, 1)}
"""Which argument of an MLX schedule is its length, and which the rate at its end (mlx.optimizers.schedulers)."""
TRAINERS = ("hf-trainer", "trl", "llamafactory", "axolotl")


@rule(severity="warning", needs=("schedule.total_steps",))
def check(view: RunView) -> Iterator[Found]:
    if view.root.format == "mlx-lm":
        yield from _mlx(view)
    engine, steps = view.fragment("deepspeed"), view.run.schedule.max_steps
    entry = engine.entry("scheduler.params.total_num_steps") if engine is not None else None
    node = entry.value if entry is not None else None
    if steps is None or not isinstance(node, Scalar) or not isinstance(node.value, int):
        return
    trainer = view.root.format in TRAINERS or "per_device_train_batch_size" in view.root.keys
    if 0 < node.value != steps.value:
        yield Found(
            at=node,
            message=f"`total_num_steps: {node.raw}` is not `{steps.key}: {steps.value}`"
            + (": the trainer refuses the two" if trainer else ""),
            help='write `"auto"`' if trainer else "make them equal",
            notes=[(steps, "the steps of the run")],
            severity="error" if trainer else None,
        )


def _mlx(view: RunView) -> Iterator[Found]:
    root, steps, warmup = view.root, view.run.schedule.total_steps, view.run.schedule.warmup_steps
    length, end = PLACES.get(str(root.written("lr_schedule.name")), (0, 0))
    if not length or steps is None:
        return
    node, first, last = _argument(root, length), _argument(root, 0), _argument(root, end)
    start, stop = _number(first) or 0.0, _number(last) or 0.0
    decay, before = _number(node) or 0.0, warmup.value if warmup is not None else 0.0
    if node is None or decay <= 0 or start <= 0 or stop >= start:
        return
    ends, total = decay + before, steps.value
    notes = [(view.run.schedule.max_steps, "the iterations"), (warmup, "the warmup before it")]
    if ends < 0.9 * total:
        yield Found(
            at=node,
            message=f"`{node.raw}` steps of decay: the rate is at its end of {stop:g} after {ends:g} of {total} steps, "
            "and stays there",
            help=f"write {max(1, total - before):g}, the steps behind the warmup",
            notes=notes,
            severity="warning" if stop < 0.1 * start else "info",
        )
    elif decay > 2 * total:
        yield Found(
            at=node,
            message=f"`{node.raw}` steps of decay, and the run has {total}: most of the decay never comes",
            help=f"write {max(1, total - before):g}, the steps behind the warmup",
            notes=notes,
            severity="info",
        )


def _argument(root: Fragment, at: int) -> Scalar | None:
    entry = root.entry("lr_schedule.arguments")
    items = entry.value.items if entry is not None and isinstance(entry.value, Sequence) else ()
    item = items[at] if len(items) > at else None
    return item if isinstance(item, Scalar) else None


def _number(node: Scalar | None) -> float | None:
    try:
        return float(str(node.value)) if node is not None else None
    except ValueError:
        return None
