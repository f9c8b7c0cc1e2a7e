"""Warmup in steps and as a share at once."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, rule, said, since


@rule(
    severity="warning",
    formats=("hf-trainer", "trl", "llamafactory", "axolotl", "ms-swift", "python-script", "shell-launcher"),
    needs=("schedule.warmup_steps", "schedule.warmup_ratio"),
)
def check(view: RunView) -> Iterator[Found]:
    steps, ratio = view.run.schedule.warmup_steps, view.run.schedule.warmup_ratio
    if steps is None or ratio is None or not (steps.written and ratio.written):
        return
    if steps.value <= 0 or ratio.value <= 0:
        return
    refused = view.root.format == "axolotl"
    new = since(view.run.versions, "transformers", "5.0")
    winner = {None: "transformers 4 takes the steps, 5 the ratio", True: "the ratio wins", False: "the steps win"}[new]
    outcome = "Axolotl refuses" if refused else winner
    yield Found(
        at=ratio,
        message=f"`{said(ratio)}` and `{said(steps)}` both set the warmup: {outcome}",
        help=f"keep one of `{ratio.key}` and `{steps.key}`",
        notes=[(steps, "the other one")],
        severity="error" if refused else None,
    )
