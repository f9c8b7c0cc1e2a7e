"""mlx-lm trains a part of the blocks although `full` is asked for."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, rule, said

DEFAULT = 16


@rule(severity="warning", formats=("mlx-lm",))
def check(view: RunView) -> Iterator[Found]:
    kind, asked = view.root.entry("fine_tune_type"), view.root.entry("num_layers")
    if kind is None or getattr(kind.value, "value", None) != "full":
        return
    count = getattr(asked.value, "value", None) if asked is not None else DEFAULT
    blocks = view.run.model.shape.layers
    if not isinstance(count, int) or count < 1 or (blocks is not None and count >= blocks.value):
        return
    of = f" of {blocks.value}" if blocks is not None else ""
    why = f"`{said(asked)}`" if asked is not None else "`num_layers` is 16 by default"
    yield Found(
        at=asked.value if asked is not None else kind.value,
        message=f"`{said(kind)}` trains the last {count}{of} blocks and no embeddings: {why}",
        help="set `num_layers: -1` for all blocks",
        notes=[(view.run.model.id, "the model")],
        severity=None if asked is None else "info",
    )
