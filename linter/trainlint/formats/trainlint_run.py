"""The run file: a run written down in the vocabulary itself (`trainlint: run`), for training loops without a config."""

from __future__ import annotations

from trainlint.documents import Document, Entry, Mapping, Node, Place, Scalar, plain
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, Reference, say
from trainlint.formats.reading import listed, real, truth, whole
from trainlint.run import PathInfo, Value, path_info
from trainlint.run.vocabulary import GROUPS

NAME = "trainlint-run"
SHORT = {"optimizer": "optimizer.name", "model": "model.id", "device": "device.name"}
"""Groups that may be written as one word."""
WANTED = {"count": "a whole number", "number": "a number", "flag": "true or false", "text": "a word"}
COUNTED = ("byte", "token", "sample", "parameter")
"""Units of which there is never less than nothing (of steps -1 may say: as many as there are)."""
OFFLOAD = {"none": "none", "cpu": "cpu", "nvme": "nvme", True: "cpu", False: "none"}


def recognise(document: Document, root: Node | None) -> int:
    """A mapping that says `trainlint: run`."""
    if not isinstance(root, Mapping):
        return 0
    node = root.get("trainlint")
    return 100 if isinstance(node, Scalar) and node.value == "run" else 0


def read(document: Document, root: Node | None) -> Fragment:
    """The values by path; what is no path of a run, or of another unit, becomes a fault with its place."""
    assert isinstance(root, Mapping)
    fragment = Fragment(NAME, document, root, launches=True)
    faults: list[tuple[Place, str]] = []
    fragment.facts["faults"] = faults
    for entry in root.entries:
        if entry.name != "trainlint":
            _read(fragment, entry, entry.name, faults)
    return fragment


def _read(fragment: Fragment, entry: Entry, path: str, faults: list[tuple[Place, str]]) -> None:
    node = entry.value
    if path == "checkpointing" and isinstance(node, Scalar):
        _checkpointing(fragment, node, faults)
        return
    if path == "model.config" and isinstance(node, Scalar) and isinstance(node.value, str):
        fragment.references.append(Reference("model", node.value, node.place, path))
        return
    if path in SHORT and isinstance(node, Scalar):
        path = SHORT[path]
    info = path_info(path)
    if info is not None:
        _put(fragment, path, info, node, faults)
    elif isinstance(node, Mapping) and (path in GROUPS or path in ("model.shape", "versions", "data.tokens")):
        for below in node.entries:
            _read(fragment, below, f"{path}.{below.name}", faults)
    elif path in GROUPS or path in ("model.shape", "versions", "data.tokens"):
        faults.append((node.place, f"`{path}` is a group of values"))
    else:
        faults.append((entry.key.place, f"a run has no `{path}`{_suggestion(path)}"))


def _checkpointing(fragment: Fragment, node: Scalar, faults: list[tuple[Place, str]]) -> None:
    word = {True: "full", False: "none"}.get(node.value) if isinstance(node.value, bool) else node.value
    if word in ("none", "full", "selective"):
        fragment.values["checkpointing.kind"] = say(NAME, "checkpointing", node, word)
    else:
        faults.append((node.place, f"`checkpointing` is true, false, full or selective, not `{node.raw}`"))


def _put(fragment: Fragment, path: str, info: PathInfo, node: Node, faults: list[tuple[Place, str]]) -> None:
    if isinstance(node, Scalar) and node.value is None:
        return
    made: object = None
    wanted = WANTED.get(info.kind, "")
    if info.kind == "anything":
        made = plain(node)
    elif info.kind == "texts":
        made, wanted = listed(node), "a list of names"
    elif isinstance(node, Scalar):
        value = node.value
        match info.kind:
            case "flag":
                made = truth(value)
            case "text":
                value = OFFLOAD.get(value, value) if path.startswith("sharding.offload_") else value
                made = value if isinstance(value, str) else None
                if info.choices:
                    made, wanted = (made if made in info.choices else None), "one of " + ", ".join(info.choices)
            case _ if info.unit and isinstance(value, str) and (info.unit == "byte" or real(value) is None):
                made, wanted = _quantity(value, info)
            case "count" if info.unit != "byte":
                made = whole(value)
            case "number":
                made = real(value)
            case _:
                wanted = "a size with its unit, like `24 GiB`"
        if info.unit in COUNTED and isinstance(made, int | float) and made < 0:
            made, wanted = None, f"a number of {info.unit}s, none or more"
    if made is None:
        raw = f", not `{node.raw}`" if isinstance(node, Scalar) else ""
        faults.append((node.place, f"`{path}` is {wanted}{raw}"))
        return
    raw = node.raw if isinstance(node, Scalar) else ""
    if path == "model.id":
        fragment.references.append(Reference("model", str(made), node.place, path))  # it may be a local folder
    fragment.values[path] = Value(made, "written", path, node.place, raw, info.unit, file_format=NAME)


def _quantity(text: str, info: PathInfo) -> tuple[object, str]:
    from trainlint.units import UnitError, parse

    try:
        number = parse(text, info.unit)
    except UnitError:
        return None, f"a number of {info.unit}s with its unit"
    if info.kind != "count":
        return number, ""
    return whole(number), f"a whole number of {info.unit}s"


def _suggestion(path: str) -> str:
    from difflib import get_close_matches

    from trainlint.run import paths

    close = get_close_matches(path, (*paths(), *GROUPS), 1, 0.7)
    return f", did you mean `{close[0]}`" if close else ""


def complete(draft: Draft) -> None:
    """What the run vocabulary says where nothing is written."""
    draft.default("method", "full", "a run file without `method`")
    draft.default("checkpointing.kind", "none", "a run file without `checkpointing`")
    draft.default("attention", "sdpa", "torch's default")
    draft.default("loss", "full", "a run file without `loss`")
    draft.default("objective", "sft", "a run file without `objective`")
    draft.default("batch.accumulation", 1, "a run file without `batch.accumulation`")
    weights, compute = draft.get("precision.weights"), draft.get("precision.compute")
    if weights is not None:
        draft.default("precision.compute", weights, "`precision.weights`")
        draft.derive("precision.autocast", compute is not None and compute != weights, "compute differs from weights")
    if draft.get("method") != "full":
        draft.default("adapter.dtype", "float32", "peft >=0.12")


FORMAT = Format(NAME, "trainlint run file", recognise, read, complete)
