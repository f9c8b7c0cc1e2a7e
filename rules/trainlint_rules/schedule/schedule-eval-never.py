"""Evaluation every so many steps, and the run has fewer."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, rule, said, since, written

FORMATS = ("hf-trainer", "trl", "llamafactory", "axolotl", "python-script", "shell-launcher")


@rule(severity="warning", needs=("evaluation.every", "schedule.total_steps"), formats=FORMATS)
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    every, total, when = run.evaluation.every, run.schedule.total_steps, run.evaluation.strategy
    steps = when.value == "steps" if when is not None else view.root.format == "axolotl"
    if every is None or total is None or not steps or not every.written or every.value <= max(total.value, 1):
        return
    # 5.24 evaluates once more when the last step is done; the release that began with it is not known exactly
    late = since(run.versions, "transformers", "5.24") is True
    yield Found(
        at=every,
        message=f"`{said(every)}` is more than the {written(total.value)} steps of the run ({total.note}): "
        + ("it is evaluated at the end alone" if late else "it is never evaluated"),
        help=f"lower `{every.key}`, or evaluate every epoch",
        notes=[(run.schedule.max_steps, "the steps"), (run.data.rows, "the samples")],
        severity="info" if late else None,
    )
