"""Batches to read ahead, and no loader process that could."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, rule, said

FILES = ("hf-trainer", "trl", "llamafactory")
"""Formats in which a key that is not written has its default, 0."""
WORKERS = "dataloader_num_workers"


@rule(severity="error", formats=(*FILES, "python-script", "shell-launcher"))
def check(view: RunView) -> Iterator[Found]:
    factor, workers = view.root.entry("dataloader_prefetch_factor"), view.run.data.workers
    ahead = view.root.written("dataloader_prefetch_factor")
    none = (workers is not None and workers.value == 0) or (
        workers is None and view.root.format in FILES and view.root.entry(WORKERS) is None and not _told(view)
    )
    if factor is None or not isinstance(ahead, int) or ahead <= 0 or not none:
        return
    yield Found(
        at=factor,
        message=f"`{said(factor)}` without loader processes that could read ahead: `TrainingArguments` raises",
        help=f"set `{WORKERS}` to 2 or more, or leave `{factor.name}` out",
    )


def _told(view: RunView) -> bool:
    """Whether a command line that starts the run may say the workers."""
    return any(WORKERS in fragment.document.text for fragment in view.fragments[1:])
