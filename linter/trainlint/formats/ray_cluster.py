"""Ray cluster launcher configs: node types with accelerators; where these differ, none of them counts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainlint.documents import Document, Mapping, Node, Scalar, Sequence
from trainlint.formats.format import Format
from trainlint.formats.fragment import Fragment, say

if TYPE_CHECKING:
    from trainlint.formats.launch.accelerators import Values

NAME = "ray-cluster"
_INSTANCES = ("InstanceType", "machineType", "azure_arm_parameters.vmSize", "instance_type", "profile")
_SHARED = re.compile(r"--shm-size[= ]['\"]?([\d.]+\s*[a-zA-Z]*)")


def recognise(document: Document, root: Node | None) -> int:
    """A cluster with node types that have accelerators."""
    if not isinstance(root, Mapping) or not root.names() >= {"available_node_types", "provider"}:
        return 0
    return 90 if any(_accelerated(kind) for _, kind in _types(root)) else 0


def read(document: Document, root: Node | None) -> Fragment:
    """The device and number of the nodes with accelerators, where these are all alike."""
    from trainlint.formats.launch import job
    from trainlint.formats.launch.accelerators import binary_size, total
    from trainlint.formats.launch.embedded import Source
    from trainlint.formats.reading import whole

    assert isinstance(root, Mapping)
    head = root.get("head_node_type")
    found = [(name, kind) for name, kind in _types(root) if _accelerated(kind)]
    each = [_node(kind) for _, kind in found]
    values: Values = {}
    alike = {(str(one["device.name"].value) if "device.name" in one else "", _gpus(one)) for one in each}
    if len(alike) == 1:
        values = dict(each[-1])
        counts: list[int | None] = []
        at: Scalar | None = None
        for name, kind in found:
            least, most = kind.get("min_workers"), kind.get("max_workers")
            least = least if isinstance(least, Scalar) else root.get("min_workers")
            most = most if isinstance(most, Scalar) else root.get("max_workers")
            numbers = [whole(node.value) for node in (least, most) if isinstance(node, Scalar)]
            at = least if isinstance(least, Scalar) and numbers[:1] != [0] else at
            fixed = numbers[0] if len(numbers) == 2 and numbers[0] == numbers[1] else None
            own = 1 if isinstance(head, Scalar) and head.value == name else 0
            counts.append(None if fixed is None and not own else (fixed or 0) + own)
        if None not in counts and at is not None:
            nodes = sum(count for count in counts if count is not None)
            values["parallel.nodes"] = say(NAME, "min_workers", at, nodes)
            total(values)
    image, options = root.find("docker.image"), root.find("docker.run_options")
    if isinstance(image, Scalar) and isinstance(image.value, str):
        values["launch.image"] = say(NAME, "image", image, image.value)
    for item in options.items if isinstance(options, Sequence) else ():
        match = _SHARED.search(str(item.value)) if isinstance(item, Scalar) else None
        size = binary_size(Scalar(match[1], match[1], item.place)) if match is not None else None
        if size is not None and isinstance(item, Scalar):
            values["launch.shm"] = say(NAME, "run_options", item, True)
            values["launch.shm_memory"] = say(NAME, "run_options", item, size, "byte")
    setup = root.get("setup_commands")
    lines = [item for item in setup.items if isinstance(item, Scalar)] if isinstance(setup, Sequence) else []
    return job.fragment(NAME, document, root, (), values, setup=Source(document).lines(lines))


def _types(root: Mapping) -> list[tuple[str, Mapping]]:
    types = root.get("available_node_types")
    listed = types.index.items() if isinstance(types, Mapping) else ()
    return [(name, entry.value) for name, entry in listed if isinstance(entry.value, Mapping)]


def _accelerated(kind: Mapping) -> bool:
    return bool(_node(kind))


def _gpus(values: Values) -> object:
    gpus = values.get("launch.gpus")
    return gpus.value if gpus is not None else None


def _node(kind: Mapping) -> Values:
    """The accelerators of one node type: by its instance type, by a GCP accelerator, by its resources."""
    from trainlint.formats.launch.accelerators import named
    from trainlint.formats.reading import whole

    values: Values = {}
    for key in _INSTANCES:
        node = kind.find(f"node_config.{key}")
        if isinstance(node, Scalar) and isinstance(node.value, str):
            values |= named(NAME, key, node, node.value.rpartition("/")[2])
    guests = kind.find("node_config.guestAccelerators")
    for item in guests.items if isinstance(guests, Sequence) else ():
        if not isinstance(item, Mapping):
            continue
        device, count = item.get("acceleratorType"), item.get("acceleratorCount")
        if isinstance(device, Scalar) and isinstance(device.value, str):
            values["device.name"] = say(NAME, "acceleratorType", device, device.value.rpartition("/")[2])
        if isinstance(count, Scalar) and (number := whole(count.value)):
            values["launch.gpus"] = say(NAME, "acceleratorCount", count, number)
    gpus = kind.find("resources.GPU")
    if isinstance(gpus, Scalar) and (number := whole(gpus.value)):
        values["launch.gpus"] = say(NAME, "GPU", gpus, number)
    return values


FORMAT = Format(NAME, "Ray cluster", recognise, read)
