"""dstack configurations: tasks with GPUs, or with commands that train.

A GPU is named (`A100:40GB:2`), or asked for by its memory: `24GB` is exactly that, a range says no size.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainlint.documents import Document, Mapping, Node, Scalar, Sequence
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, say

if TYPE_CHECKING:
    from trainlint.formats.launch.accelerators import Values

NAME = "dstack"
_VENDORS = frozenset(("nvidia", "amd", "google", "tpu", "tenstorrent", "intel"))
_DURATION = re.compile(r"(\d+)([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def recognise(document: Document, root: Node | None) -> int:
    """A task in dstack's words."""
    if not isinstance(root, Mapping):
        return 0
    kind, names = root.get("type"), root.names()
    if not isinstance(kind, Scalar) or kind.value != "task" or not isinstance(root.get("commands"), Sequence):
        return 0
    if not names & {"resources", "nodes", "image", "python", "env", "name", "fleets", "backends", "spot_policy"}:
        return 0
    if isinstance(root.find("resources.gpu"), Scalar | Mapping):
        return 90
    from trainlint.formats.launch import job
    from trainlint.formats.launch.embedded import Source

    return 85 if job.trainings(Source(document).lines(_commands(root))) else 0


def read(document: Document, root: Node | None) -> Fragment:
    """What the task gets, and its commands."""
    from trainlint.formats.launch import job
    from trainlint.formats.launch.accelerators import binary_size, total
    from trainlint.formats.launch.embedded import Source
    from trainlint.formats.reading import whole

    assert isinstance(root, Mapping)
    source = Source(document)
    gpu = root.find("resources.gpu")
    values = _gpu(gpu)
    kind = root.get("type")
    if isinstance(kind, Scalar):
        values["launch.accelerated"] = say(NAME, "gpu", gpu if isinstance(gpu, Scalar) else kind, gpu is not None)
    nodes = root.get("nodes")
    if isinstance(nodes, Scalar) and (count := whole(nodes.value)) is not None:
        values["parallel.nodes"] = say(NAME, "nodes", nodes, count)
    for key, path in (("memory", "launch.memory"), ("shm_size", "launch.shm_memory"), ("disk", "launch.disk")):
        node = root.find(f"resources.{key}")
        if not isinstance(node, Scalar):
            continue
        text = str(node.value)
        size = binary_size(Scalar(text.partition("..")[0], text, node.place), "g")
        if size is None:
            continue
        values[path] = say(NAME, key, node, float(size) if key == "memory" else size, "byte")
        if key == "memory" and ".." not in text:
            values["device.host_memory"] = say(NAME, key, node, size, "byte")
        if key == "shm_size":
            values["launch.shm"] = say(NAME, key, node, True)
    image, limit = root.get("image"), root.get("max_duration")
    if isinstance(image, Scalar) and isinstance(image.value, str):
        values["launch.image"] = say(NAME, "image", image, image.value)
    if isinstance(limit, Scalar) and (found := _DURATION.fullmatch(str(limit.value))):
        values["launch.time"] = say(NAME, "max_duration", limit, float(int(found[1]) * _SECONDS[found[2]]))
    total(values)
    env = job.variables(source, root.get("env"))
    known = job.known(env)
    if isinstance(nodes, Scalar):
        known["DSTACK_NODES_NUM"] = source.cells(nodes)
    values |= job.environment(env, NAME)
    folder = root.get("working_dir")
    at = folder.value if isinstance(folder, Scalar) and isinstance(folder.value, str) else ""
    return job.fragment(NAME, document, root, source.lines(_commands(root), known), values, folder=at)


def complete(draft: Draft) -> None:
    """The defaults of the trainer whose arguments a command carries."""
    from trainlint.formats.launch import job

    job.complete(draft)


def _commands(root: Mapping) -> list[Scalar]:
    listed = root.get("commands")
    return [item for item in listed.items if isinstance(item, Scalar)] if isinstance(listed, Sequence) else []


def _gpu(node: Node | None) -> Values:
    """`A100:40GB:2`, `24GB`, `2`, or a mapping of name, memory and count."""
    parts: list[tuple[str, Scalar]] = []
    if isinstance(node, Scalar) and node.value is not None:
        parts = [(text, node) for text in str(node.value).split(":")]
    elif isinstance(node, Mapping):
        for key in ("name", "memory", "count"):
            below = node.get(key)
            if isinstance(below, Sequence) and len(below.items) == 1:
                below = below.items[0]
            if isinstance(below, Scalar) and below.value is not None:
                parts.append((str(below.value), below))
    return _parts(parts)


def _parts(parts: list[tuple[str, Scalar]]) -> Values:
    from trainlint.formats.launch.accelerators import binary_size

    values: Values = {}
    for text, node in parts:
        if text.lower() in _VENDORS or "," in text:
            continue
        if ".." in text:
            continue
        if text.isdecimal():
            values["launch.gpus"] = say(NAME, "gpu", node, int(text))
        elif (size := binary_size(Scalar(text, text, node.place))) is not None:
            values["device.memory"] = say(NAME, "gpu", node, size, "byte")
        else:
            values["device.name"] = say(NAME, "gpu", node, text)
    if values and "launch.gpus" not in values and not any(".." in text and "GB" not in text for text, _ in parts):
        values["launch.gpus"] = say(NAME, "gpu", parts[0][1], 1)
    return values


FORMAT = Format(NAME, "dstack task", recognise, read, complete)
