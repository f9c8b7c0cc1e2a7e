"""The direction of the metric is the wrong one, so that the worst checkpoint is kept."""

import re
from collections.abc import Iterator

from trainlint.api import Found, RunView, rule, said, since

HIGHER = re.compile(
    r"(.*[_/-])?(accuracy|acc|f1|f1[_-].*|bleu(-?\d)?|sacrebleu|rouge[\w-]*|precision|recall|auc|roc_auc|mcc|matthews_correlation|exact_match|em|map|ndcg.*|mrr.*|iou|miou|dice|chrf|meteor)",
    re.I,
)
LOWER = re.compile(r"(.*[_/-])?(loss|perplexity|ppl|wer|cer|ter|eer|mse|rmse|mae|error|error_rate|nll)", re.I)
FORMATS = ("hf-trainer", "trl", "llamafactory", "axolotl", "python-script", "shell-launcher")


@rule(severity="error", needs=("checkpoint.metric",), formats=FORMATS)
def check(view: RunView) -> Iterator[Found]:
    saved = view.run.checkpoint
    metric, greater = saved.metric, saved.greater_is_better
    unknown = view.root.facts.get("unknown")
    undecided = isinstance(unknown, frozenset) and "checkpoint.greater_is_better" in unknown
    if metric is None or not metric.written or undecided or view.root.facts.get("open"):
        return
    name = metric.value.removeprefix("eval_")
    lower, higher = bool(LOWER.fullmatch(name)), bool(HIGHER.fullmatch(name))
    best = saved.best_at_end is not None and saved.best_at_end.value
    old = name not in ("loss", "eval_loss") and since(view.run.versions, "transformers", "4.42") is False
    if greater is None and lower and (old or not name.endswith("loss")) and best:
        yield Found(
            at=metric,
            message=f"a larger `{name}` counts as better by default: the worst checkpoint is loaded at the end",
            help="set `greater_is_better: false`",
        )
    elif greater is not None and ((greater.value and lower) or (not greater.value and higher)):
        right = "false" if greater.value else "true"
        yield Found(
            at=greater,
            message=f"`{said(greater)}` keeps the checkpoint with the {'largest' if greater.value else 'smallest'} "
            f"`{name}`, the worst one",
            help=f"set `{greater.key}` to {right}",
            notes=[(metric, "the metric")],
            severity=None if best else "warning",
        )
