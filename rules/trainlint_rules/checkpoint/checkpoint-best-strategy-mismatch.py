"""The best checkpoint is to be loaded at the end, but evaluation and saving do not fall together."""

from collections.abc import Iterator
from fractions import Fraction

from trainlint.api import Found, RunView, Value, rule, written

FORMATS = ("hf-trainer", "trl", "llamafactory", "ms-swift", "python-script", "shell-launcher")


@rule(severity="error", needs=("checkpoint.best_at_end",), formats=FORMATS)
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    best, save, evaluate = run.checkpoint.best_at_end, run.checkpoint.strategy, run.evaluation.strategy
    if best is None or not best.value or save is None or evaluate is None or save.value == "best":
        return
    eval_key = evaluate.key or "eval_strategy"
    save_key = save.key or "save_strategy"
    notes = [(save, "when it is saved"), (evaluate, "when it is evaluated")]
    if save.value != evaluate.value:
        yield Found(
            at=best,
            message=f"`{best.key}: {best.raw}` needs `{eval_key}` ({_said(evaluate)}) "
            f"and `{save_key}` ({_said(save)}) to be the same",
            help=f"set `{eval_key}` and `{save_key}` alike",
            notes=notes,
        )
        return
    every, between = run.checkpoint.every, run.evaluation.every
    if save.value != "steps" or every is None or between is None or between.value <= 0 or every.value <= 0:
        return
    mixed = (every.value < 1) != (between.value < 1)
    if not mixed and Fraction(str(every.value)) % Fraction(str(between.value)) == 0:
        return
    yield Found(
        at=every if every.written else best,
        message=f"`{every.key or 'save_steps'}: {written(every.value)}` is no multiple of "
        f"`{between.key or 'eval_steps'}: {written(between.value)}`, as `{best.key}` needs",
        help=f"make `{every.key or 'save_steps'}` a multiple of `{between.key or 'eval_steps'}`",
        notes=[(between if between.written else None, "steps between two evaluations"), (best, "the best is loaded")],
    )


def _said(value: Value[str]) -> str:
    return f"`{value.value}`" if value.written else f"`{value.value}` by default"
