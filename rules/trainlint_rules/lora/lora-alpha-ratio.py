"""An adapter whose scale, alpha over rank, is far from one."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, rule, written

LOW, HIGH, RSLORA = 1 / 8, 4.0, 8.0
"""Scales outside these act like another learning rate: QLoRA's 16 / 64 and the usual 2 are inside."""


@rule(severity="info", needs=("adapter.rank", "adapter.alpha"))
def check(view: RunView) -> Iterator[Found]:
    adapter = view.run.adapter
    rank, alpha = adapter.rank, adapter.alpha
    if rank is None or alpha is None or not alpha.written or alpha.place is None or rank.value <= 0:
        return
    if not isinstance(alpha.value, int | float) or (adapter.kind and adapter.kind.value not in ("lora", "dora")):
        return
    rooted = bool(adapter.rslora and adapter.rslora.value)
    scale = alpha.value / (rank.value**0.5 if rooted else rank.value)
    if alpha.value <= 0 or (scale <= RSLORA if rooted else LOW <= scale <= HIGH):
        return
    over = f"√{rank.value}" if rooted else str(rank.value)
    yield Found(
        at=alpha,
        message=f"`{alpha.key}: {alpha.raw or written(alpha.value)}` over rank {over} scales the adapter by "
        f"{scale:.3g}, as if the learning rate were another",
        help=f"set it between {rank.value} and {2 * rank.value}, and change the learning rate instead",
        notes=[(rank, "the rank")],
    )
