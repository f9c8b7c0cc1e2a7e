"""Degrees of parallelism and batches that trainers state in all: what one device gets.

Processes are `parallel.per_node` times `parallel.nodes`, or as many as the launcher says; those that split no matrix,
layer or sequence are replicas or shards of the data. Experts are split over these: they multiply nothing.
"""

from __future__ import annotations

from trainlint.formats.format import Draft
from trainlint.run import Value

SPLITS = ("parallel.tensor", "parallel.pipeline", "parallel.context")


def whole(draft: Draft, path: str) -> int | None:
    """A count of at least one, or None."""
    value = draft.get(path)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def world(draft: Draft) -> int | None:
    """Processes in all, as far as files or the launcher say it."""
    stated = whole(draft, "parallel.world")
    if stated is not None:
        return stated
    per_node = whole(draft, "parallel.per_node")
    if per_node is not None:
        nodes = whole(draft, "parallel.nodes")
        return per_node * (nodes or 1) if nodes is not None or not draft.has("parallel.nodes") else None
    return whole(draft, "device.count")


def data_parallel(draft: Draft, note: str) -> int | None:
    """`parallel.data`: the processes over the degrees that split the model. None where that is unknown or no number."""
    processes = world(draft)
    if processes is None or any(path in draft.possible for path in SPLITS):
        return whole(draft, "parallel.data")
    split = 1
    for path in SPLITS:
        split *= whole(draft, path) or 1
    if processes % split == 0:
        draft.derive("parallel.data", processes // split, note)
    return whole(draft, "parallel.data")


def accumulation(draft: Draft, note: str) -> None:
    """`batch.accumulation` where the global batch is stated: over the micro batch and the data-parallel processes."""
    total, micro, data = whole(draft, "batch.effective"), whole(draft, "batch.micro"), whole(draft, "parallel.data")
    if total is not None and micro is not None and data is not None and total % (micro * data) == 0:
        draft.derive("batch.accumulation", total // (micro * data), note)


def positive(values: dict[str, Value[object]], *paths: str) -> None:
    """Drop written degrees below one: 0 and -1 are words of trainers for "off" and "all"."""
    for path in paths or (*SPLITS, "parallel.expert", "parallel.per_node", "parallel.nodes", "batch.effective"):
        value = values.get(path)
        if value is not None and isinstance(value.value, int) and value.value < 1:
            del values[path]
