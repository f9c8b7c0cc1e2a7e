"""Epochs in a config of mlx-lm, which counts iterations and ignores what it does not know."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, rule, said

NAMES = ("epochs", "num_epochs", "num_train_epochs", "epoch", "n_epochs")


@rule(severity="error", formats=("mlx-lm",), outranks=("schema-unknown-key",))
def check(view: RunView) -> Iterator[Found]:
    iters = view.run.schedule.max_steps
    for name in NAMES:
        entry = view.root.entry(name)
        if entry is not None:
            count = iters.value if iters is not None else 1000
            yield Found(
                at=entry.key,
                message=f"`{said(entry)}` is ignored: mlx-lm trains {count} iterations"
                + ("" if iters is not None and iters.written else ", its default"),
                help="set `iters` to the samples over `batch_size`, times the epochs",
                notes=[(iters, "this counts")],
            )
