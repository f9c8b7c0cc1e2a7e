"""The completions of one round of GRPO are no multiple of those sampled for a prompt."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, Value, known, rule, said, since

DEFAULT = 8
"""TRL's `num_generations`."""


@rule(severity="error", needs=("batch.micro", "batch.accumulation"))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    group = run.batch.generations
    if str(known(run.objective)) not in ("grpo", "rloo") or run.batch.micro is None or run.batch.accumulation is None:
        return
    if group is None and known(run.framework) == "axolotl":
        return
    size = group.value if group is not None else DEFAULT
    at = group if group is not None and group.written else run.batch.micro
    processes = run.parallel.world
    if size < 2 or not at.written:
        return
    rounds = list(_rounds(view))
    if not rounds or any(count % size == 0 for count, _ in rounds):
        return
    count, how = rounds[0]
    key = group.key if group is not None and group.key else "num_generations"
    what = f"`{said(group)}`" if group is not None and group.written else f"the default of {size} completions a prompt"
    near = sorted((n for n in range(2, count + 1) if count % n == 0), key=lambda number: abs(number - size))[:3]
    divisors = ", ".join(map(str, sorted(near)))
    yield Found(
        at=at,
        message=f"{count} completions a round ({how}) are no multiple of {what}, and the trainer stops at the start",
        help=f"set `{key}` to {'one of ' if ',' in divisors else ''}{divisors}, or change the batch"
        if divisors
        else f"raise `{run.batch.micro.key or 'per_device_train_batch_size'}` to a multiple of {size}",
        notes=[(run.batch.micro if at is not run.batch.micro else None, "the batch"), (processes, "the processes")],
    )


def _rounds(view: RunView) -> Iterator[tuple[int, str]]:
    """The completions that one round has, in each release that may run."""
    run = view.run
    assert run.batch.micro is not None
    assert run.batch.accumulation is not None
    micro, steps, world = run.batch.micro.value, run.batch.accumulation.value, run.parallel.world
    if known(run.framework) == "axolotl":
        yield micro * steps, f"{micro} x {steps} accumulated"
        return
    whole: Value[int] | None = run.batch.generation
    if whole is not None:
        yield whole.value, f"`{said(whole)}`"
        return
    if world is None:
        return
    each = micro * world.value
    words = f"{micro} x {world.value} process{'es' if world.value != 1 else ''}"
    if since(run.versions, "trl", "0.17") is not True and known(run.framework) != "ms-swift":
        yield each, words
    if since(run.versions, "trl", "0.17") is not False:
        given = run.batch.generation_steps
        times = given.value if given is not None else steps
        yield each * times, f"{words} x {times} {'steps' if given is not None else 'accumulated'}"
