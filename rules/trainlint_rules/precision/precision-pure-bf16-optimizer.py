"""Weights held in bf16 alone, and updates too small for its eight bits."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, may_be_sharded, rule, written

SMALL = 1e-5
"""Learning rate up to which Adam's step, about the rate itself, is lost on weights over 256 times as large."""
ADAM = ("adamw_torch", "adamw_torch_fused", "adamw_hf", "adamw_bnb_8bit", "adamw_8bit", "paged_adamw_32bit")

LAUNCHED = ("hf-trainer", "trl", "python-script")
"""Runs that DeepSpeed or FSDP, which keep float32 copies, may be told of by a launcher that was not seen."""


@rule(severity="info", needs=("precision.weights", "optimizer.lr", "method"))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    weights, rate, name, kind = run.precision.weights, run.optimizer.lr, run.optimizer.name, run.sharding.kind
    if weights is None or rate is None or run.method is None or weights.value != "bfloat16":
        return
    if run.method.value != "full" or not 0 < rate.value <= SMALL or rate.place is None:
        return
    if name is None or name.value not in ADAM or (kind is not None and kind.value.startswith("zero")):
        return  # DeepSpeed keeps a float32 copy; other optimizers round stochastically or carry the error along
    if run.precision.master is not None and run.precision.master.value == "float32":
        return
    chosen = view.root.value("pure_bf16")
    explicit = chosen is not None and chosen.value is True
    if not explicit and view.root.format in LAUNCHED and may_be_sharded(view):
        return
    largest = rate.value * 2**9
    yield Found(
        at=rate,
        message=f"`{rate.key}: {rate.raw or written(rate.value)}` on weights held in bf16 alone: "
        f"a step is rounded away on every weight larger than about {largest:.2g}",
        help=_advice(view, explicit),
        notes=[(chosen if explicit else weights, "the weights are bf16")],
        severity="warning" if explicit else "info",
    )


def _advice(view: RunView, explicit: bool) -> str:
    if explicit:
        return "set `bf16: true` in its place: the weights stay float32"
    weights = (
        "set `dtype: fp32`" if view.root.format == "torchtune" else "keep the weights in float32 (mixed precision)"
    )
    return f"{weights}, or take an optimizer that rounds stochastically"
