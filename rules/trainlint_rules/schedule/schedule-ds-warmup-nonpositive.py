"""A DeepSpeed schedule whose warmup has no step, or whose whole length is over before it decays."""

from collections.abc import Iterator

from trainlint.api import FileView, Found, Fragment, Node, Scalar, rule, set_value, since

DECAYING = ("WarmupDecayLR", "WarmupCosineLR")


@rule(severity="error", on="file", formats=("deepspeed",))
def check(view: FileView) -> Iterator[Found]:
    fragment = view.fragment
    kind = fragment.written("scheduler.type")
    node, warmup = _number(fragment, "scheduler.params.warmup_num_steps")
    if node is not None and warmup is not None and warmup < 1 and str(kind).startswith("Warmup"):
        refuses = since(view.versions, "deepspeed", "0.19.6")
        if refuses is not False:
            yield Found(
                at=node,
                message=f"`warmup_num_steps: {node.raw}` is refused by DeepSpeed from 0.19.6 on: it wants one step",
                help='write `"auto"` under a Hugging Face trainer, or `1`',
                fix=set_value(node, '"auto"'),
                severity="error" if refuses else "warning",
            )
    node, total = _number(fragment, "scheduler.params.total_num_steps")
    if node is None or total is None or kind not in DECAYING:
        return
    if total < 1 or (warmup is not None and warmup > 1 and total <= warmup):
        yield Found(
            at=node,
            message=f"`total_num_steps: {node.raw}` ends the schedule "
            + ("before it begins" if total < 1 else f"within the warmup of {warmup:g} steps")
            + ": the learning rate is at its end right after the warmup",
            help='write `"auto"` under a Hugging Face trainer, or the steps of the whole run',
            fix=set_value(node, '"auto"'),
        )


def _number(fragment: Fragment, key: str) -> tuple[Scalar | None, float | None]:
    entry = fragment.entry(key)
    node: Node | None = entry.value if entry is not None else None
    if not isinstance(node, Scalar) or isinstance(node.value, bool) or not isinstance(node.value, int | float):
        return None, None
    return node, float(node.value)
