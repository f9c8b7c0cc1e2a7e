"""The paths of a run as data: what each is, its unit, which words it may hold. Rules and run files are checked here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from trainlint.run import training
from trainlint.run.declare import Group
from trainlint.run.training import TrainingRun
from trainlint.run.value import Value

GROUPS: Mapping[str, type[Group]] = {
    "model": training.Model,
    "precision": training.Precision,
    "adapter": training.Adapter,
    "quantization": training.Quantization,
    "batch": training.Batch,
    "length": training.Length,
    "checkpointing": training.Checkpointing,
    "evaluation": training.Evaluation,
    "optimizer": training.Optimizer,
    "schedule": training.Schedule,
    "checkpoint": training.Checkpoint,
    "sharding": training.Sharding,
    "parallel": training.Parallel,
    "device": training.Device,
    "data": training.Data,
    "launch": training.Launch,
}
OPEN = ("versions.", "data.tokens.")
"""Groups whose names are not fixed: package names, percentiles."""


class PathInfo(NamedTuple):
    """What the vocabulary says of one path. `kind`: text, texts, count, number, flag or anything."""

    path: str
    kind: str
    unit: str
    choices: tuple[str, ...]
    meaning: str


@lru_cache(maxsize=1)
def paths() -> Mapping[str, PathInfo]:
    """Every fixed path, in the order of the vocabulary."""
    found: dict[str, PathInfo] = {}

    def collect(owner: type[Group], prefix: str) -> None:
        for name, field in owner.declared.items():
            path = prefix + name
            found[path] = PathInfo(path, field.kind, field.unit, field.choices, field.meaning)

    collect(TrainingRun, "")
    for name, group in GROUPS.items():
        collect(group, name + ".")
        if group is training.Model:
            collect(training.Shape, "model.shape.")
    return found


def path_info(path: str) -> PathInfo | None:
    """What is known of a path, or None where a run has no such path."""
    fixed = paths().get(path)
    if fixed is not None:
        return fixed
    if path.startswith("versions."):
        return PathInfo(path, "text", "", (), "version of a package")
    if path.startswith("data.tokens."):
        return PathInfo(path, "count", "token", (), "length of the samples at that percentile")
    return None


def build(
    root: str,
    root_format: str,
    files: tuple[str, ...],
    values: Mapping[str, Value[object]],
    possible: Mapping[str, tuple[Value[object], ...]] | None = None,
) -> TrainingRun:
    """A run from its values by path. Raises KeyError for a path that no run has."""
    direct: dict[str, object] = {}
    grouped: dict[str, dict[str, object]] = {}
    shape: dict[str, object] = {}
    tokens: dict[str, Value[object]] = {}
    versions: dict[str, Value[object]] = {}
    for path, value in values.items():
        if path_info(path) is None:
            raise KeyError(path)
        head, _, tail = path.partition(".")
        if not tail:
            direct[head] = value
        elif head == "versions":
            versions[tail] = value
        elif path.startswith("data.tokens."):
            tokens[path.rpartition(".")[2]] = value
        elif path.startswith("model.shape."):
            shape[path.rpartition(".")[2]] = value
        else:
            grouped.setdefault(head, {})[tail] = value
    if shape:
        grouped.setdefault("model", {})["shape"] = training.Shape(**shape)
    if tokens:
        grouped.setdefault("data", {})["tokens"] = tokens
    made = {name: GROUPS[name](**below) for name, below in grouped.items()}
    return TrainingRun(
        root=root,
        root_format=root_format,
        files=files,
        versions=versions,
        values=dict(values),
        possible=possible or {},
        **direct,
        **made,
    )
