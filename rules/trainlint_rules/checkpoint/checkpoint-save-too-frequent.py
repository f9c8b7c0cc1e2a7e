"""A large model is saved every few steps, so that most of the time goes into writing."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, rule, said

FEW = 10
LARGE = 1_000_000_000
FORMATS = ("hf-trainer", "trl", "llamafactory", "axolotl", "python-script", "shell-launcher")


@rule(severity="warning", needs=("checkpoint.every", "model.parameters"), formats=FORMATS)
def check(view: RunView) -> Iterator[Found]:
    saved, size, total = view.run.checkpoint, view.run.model.parameters, view.run.schedule.total_steps
    every, only = saved.every, saved.only_model
    if every is None or size is None or not every.written or not 1 <= every.value < FEW or size.value < LARGE:
        return
    if (saved.strategy is not None and saved.strategy.value != "steps") or (only is not None and only.value):
        return
    if total is not None and total.value < 20 * every.value:
        return  # a trial
    method = view.run.method.value if view.run.method is not None else ""
    adapter = method in ("lora", "qlora")
    if adapter and every.value > 2:
        return
    often = "every step" if every.value == 1 else f"every {every.value:g} steps"
    yield Found(
        at=every,
        message=f"`{said(every)}` writes the {'adapter' if adapter else 'model'} and the optimizer of "
        f"{size.value / 1e9:.3g} billion parameters {often}",
        help=f"raise `{every.key}` to 100 or more",
        notes=[(saved.total_limit, "kept"), (view.run.model.id, "the model")],
    )
