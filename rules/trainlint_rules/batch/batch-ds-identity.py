"""DeepSpeed's batch size is not micro batch x accumulation x processes."""

from collections.abc import Iterator
from math import prod

from trainlint.api import Found, Fragment, RunView, Scalar, rule

TOTAL = "train_batch_size"
FACTORS = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
DEGREES = ("tensor_parallel", "sequence_parallel_size", "pipeline")
"""Sections that put several processes on one sample: the identity then counts data-parallel ranks."""


@rule(severity="error")
def check(view: RunView) -> Iterator[Found]:
    deepspeed = view.fragment("deepspeed")
    entry = deepspeed.entry(TOTAL) if deepspeed is not None else None
    if deepspeed is None or entry is None or any(deepspeed.entry(key) for key in DEGREES):
        return
    total = _whole(deepspeed, TOTAL)
    factors = {key: _whole(deepspeed, key) for key in FACTORS}
    split = [view.run.get(f"parallel.{name}") for name in ("tensor", "pipeline", "context")]
    if total is None or any(isinstance(degree.value, int) and degree.value > 1 for degree in split if degree):
        return
    written = {key: number for key, number in factors.items() if number is not None}
    world = view.run.parallel.world
    if world is not None:
        written["processes"] = world.value
    product = prod(written.values())
    complete = len(written) == len(FACTORS) + 1
    if not written or product <= 0 or (total == product if complete else total % product == 0):
        return
    sum_of = " x ".join(f"{number} ({key})" for key, number in written.items())
    is_not = f"is not {sum_of} = {product}" if complete else f"is no multiple of {sum_of} = {product}"
    yield Found(
        at=entry,
        message=f"`{TOTAL}: {total}` {is_not}",
        help=f"remove `{TOTAL}`: DeepSpeed computes it from the other two",
        notes=[(deepspeed.entry(key), "a factor") for key in written if key != "processes"]
        + [(world if world is not None and world.written else None, "the processes")],
    )


def _whole(fragment: Fragment, key: str) -> int | None:
    entry = fragment.entry(key)
    if entry is None or not isinstance(entry.value, Scalar):
        return None
    value = entry.value.value
    return value if isinstance(value, int) and not isinstance(value, bool) else None
