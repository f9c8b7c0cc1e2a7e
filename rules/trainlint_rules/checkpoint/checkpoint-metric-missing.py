"""The best checkpoint is chosen by a metric that no evaluation gives."""

from collections.abc import Iterator

from trainlint.api import Found, Fragment, RunView, rule, said, setup_of

ALWAYS = frozenset(("loss", "runtime", "samples_per_second", "steps_per_second", "model_preparation_time"))
"""What the Trainer's evaluation gives without `compute_metrics`."""


@rule(severity="error", needs=("checkpoint.metric",))
def check(view: RunView) -> Iterator[Found]:
    metric, when = view.run.checkpoint.metric, view.run.evaluation.strategy
    if metric is None or not metric.written or when is None or when.value == "no":
        return
    name = metric.value.removeprefix("eval_")
    if view.root.framework == "llamafactory" or view.root.format == "llamafactory":
        yield from _factory(view, name)
        return
    script = next((one for one in view.fragments if one.format == "python-script"), None)
    made = setup_of(script) if script is not None else None
    trainer = made.trainer if made is not None else None
    if trainer is None or trainer.name not in ("transformers.Trainer", "transformers.Seq2SeqTrainer", "Trainer"):
        return
    if name in ALWAYS or "compute_metrics" in trainer.sources or trainer.open or len(trainer.positional) > 6:
        return
    if name.endswith("_loss") and trainer.sources.get("eval_dataset", "{")[:1] != "[":
        return  # several evaluation sets: `eval_<name>_loss`
    yield Found(
        at=metric,
        message=f"`{said(metric)}` is computed by nobody: `{trainer.short}` gets no `compute_metrics`",
        help=f"pass a `compute_metrics` that returns `{name}`, or set `{metric.key}` to `loss`",
        notes=[(trainer.place, "the trainer")],
    )


def _factory(view: RunView, name: str) -> Iterator[Found]:
    """LLaMA-Factory's stages compute metrics of their own only where they are asked for."""
    metric, root = view.run.checkpoint.metric, view.root
    objective = view.run.objective
    if metric is None or objective is None or objective.value not in ("sft", "pretrain"):
        return
    known = set(ALWAYS)
    if root.written("compute_accuracy") is True:
        known.add("accuracy")
    if root.written("predict_with_generate") is True:
        known |= {"bleu-4", "rouge-1", "rouge-2", "rouge-l"}
    each = root.written("eval_on_each_dataset") is True
    names = _sets(root) if each else ()
    if each and len(names) > 1:
        known = {f"{one}_{metric_name}" for one in names for metric_name in known}
    if name in known:
        return
    yield Found(
        at=metric,
        message=f"`{said(metric)}` is not among what is evaluated: "
        + (", ".join(f"`eval_{one}_loss`" for one in names) if each and names else "`eval_loss`"),
        help="set `compute_accuracy: true`" if name == "accuracy" else f"set `{metric.key}` to one of these",
    )


def _sets(root: Fragment) -> tuple[str, ...]:
    named = root.written("eval_dataset")
    return tuple(part.strip() for part in named.split(",")) if isinstance(named, str) else ()
