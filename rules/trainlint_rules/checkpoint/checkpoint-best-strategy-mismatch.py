"""The best checkpoint is to be loaded at the end, but evaluation and saving do not fall together."""

from collections.abc import Iterator
from fractions import Fraction

from trainlint.api import Found, RunView, Value, rule, written

FILES = ("hf-trainer", "trl", "llamafactory")
"""Files that hold all arguments: what they leave out has the Trainer's default."""
FORMATS = (*FILES, "python-script", "shell-launcher")


@rule(severity="error", needs=("checkpoint.best_at_end",), formats=FORMATS)
def check(view: RunView) -> Iterator[Found]:
    run, whole = view.run, view.root.format in FILES
    best = run.checkpoint.best_at_end
    save = run.checkpoint.strategy or (_default("steps") if whole else None)
    evaluate = run.evaluation.strategy or (_default("no") if whole else None)
    if best is None or not best.value or save is None or evaluate is None or save.value == "best":
        return
    if save.value != evaluate.value:
        yield Found(
            at=best,
            message=f"`{best.key}: {best.raw}` needs evaluation ({_said(evaluate, 'eval_strategy')}) "
            f"and saving ({_said(save, 'save_strategy')}) at the same steps",
            help=f"set `{evaluate.key or 'eval_strategy'}` and `{save.key or 'save_strategy'}` alike",
            notes=[(save, "when it is saved"), (evaluate, "when it is evaluated")],
        )
        return
    logged = view.root.value("logging_steps")
    every = _number(run.checkpoint.every or (_default(500) if whole else None))
    between = _number(run.evaluation.every or (logged or _default(500) if whole else None))
    if save.value != "steps" or not every or not between or (every % between == 0 and (every < 1) == (between < 1)):
        return
    saved, evaluated = run.checkpoint.every, run.evaluation.every or logged
    yield Found(
        at=saved or best,
        message=f"saving every {written(float(every))} steps is no multiple of evaluating every "
        f"{written(float(between))}, as `{best.key}: {best.raw}` needs",
        help=f"make `{saved.key if saved else 'save_steps'}` a multiple of `{_evaluated(run.evaluation.every)}`",
        notes=[(evaluated, "how often it is evaluated"), (best if saved else None, "the best is loaded")],
    )


def _default(value: object) -> Value[object]:
    return Value(value, "default")


def _number(value: Value[object] | Value[float] | None) -> Fraction | None:
    number = None if value is None else value.value
    return Fraction(str(number)) if isinstance(number, int | float) and number > 0 else None


def _evaluated(value: Value[float] | None) -> str:
    return value.key if value is not None and value.key else "eval_steps"


def _said(value: Value[object] | Value[str], key: str) -> str:
    return f"`{value.key}: {value.value}`" if value.written else f"`{key}: {value.value}` by default"
