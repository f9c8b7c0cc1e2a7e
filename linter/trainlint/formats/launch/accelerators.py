"""Devices and sizes as launchers' files write them: resource names, labels, instance types, quantities."""

from __future__ import annotations

import re
from math import inf

from trainlint.documents import Scalar
from trainlint.formats.fragment import say
from trainlint.run import Value

Values = dict[str, Value[object]]

RESOURCES = (
    "nvidia.com/",
    "amd.com/gpu",
    "gpu.intel.com/",
    "google.com/tpu",
    "habana.ai/gaudi",
    "aws.amazon.com/neuron",
)
"""Kubernetes resources that are accelerators, by the start of their names."""
NO_DEVICES = ("nvidia.com/hostdev", "nvidia.com/ib", "nvidia.com/rdma", "nvidia.com/mlnx")
"""Network cards under NVIDIA's name."""
LABELS = re.compile(r"instance-type$|gpu|accelerator", re.IGNORECASE)
"""Node labels that name a device or an instance type."""

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([a-zA-Z]*)")
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6}


def is_accelerator(resource: str) -> bool:
    """Whether a Kubernetes resource is an accelerator (`nvidia.com/gpu`, `nvidia.com/mig-1g.10gb`)."""
    return resource.startswith(RESOURCES) and not resource.startswith(NO_DEVICES)


def kubernetes_quantity(node: object) -> float | None:
    """A Kubernetes quantity as a number: `64Gi` is 64 * 2**30, `64G` 64e9, `500m` a half."""
    found = _QUANTITY.fullmatch(_text(node))
    if found is None:
        return None
    number, suffix = float(found[1]), found[2]
    if suffix == "m":
        return number / 1000
    if suffix.endswith("i") and suffix[:-1] in "KMGTPE" and len(suffix) == 2:
        return number * 1024.0 ** _POWERS[suffix[0].lower()]
    return number * 1000.0 ** _POWERS[suffix.lower()] if suffix in ("", "k", "M", "G", "T", "P", "E") else None


def binary_size(node: object, unit: str = "") -> int | None:
    """A size whose units count in powers of 1024, in bytes: Docker's `1g`, dstack's `16GB`; `unit`: of a bare one."""
    found = _QUANTITY.fullmatch(_text(node))
    if found is None:
        return None
    suffix = (found[2] or unit).lower().removesuffix("b").removesuffix("i")
    size = float(found[1]) * 1024 ** _POWERS[suffix] if suffix in _POWERS else inf
    return int(size) if size < inf else None


def _text(node: object) -> str:
    if not isinstance(node, Scalar) or isinstance(node.value, bool):
        return ""
    return (node.value if isinstance(node.value, str) else node.raw).strip()


def named(format_name: str, key: str, node: Scalar, name: str = "") -> Values:
    """What a label or a field says of the device: its name, or an instance type with all that has."""
    from trainlint.facts import devices, instances

    text = name or _text(node)
    instance = instances.find(text) if text else None
    if instance is not None:
        return of_instance(format_name, key, node, instance)
    return {"device.name": say(format_name, key, node, text)} if text and devices.find(text) is not None else {}


def of_instance(format_name: str, key: str, node: Scalar, instance: object) -> Values:
    """Device, number, share and RAM of a cloud instance type."""
    from trainlint.facts.instances import Instance

    assert isinstance(instance, Instance)

    def follows(value: object, unit: str = "") -> Value[object]:
        return Value(
            value, "derived", key, node.place, node.raw, unit, f"the instance type {instance.name}", format_name
        )

    found: Values = {"device.name": follows(instance.device), "launch.gpus": follows(instance.count)}
    if instance.host_memory is not None:
        found["device.host_memory"] = follows(instance.host_memory, "byte")
    if instance.slice is not None:
        found["device.memory"] = follows(instance.slice, "byte")
    return found


def total(values: Values) -> None:
    """The number of devices over all machines, where both are known; a job that says no number has one machine."""
    gpus, nodes = values.get("launch.gpus"), values.get("parallel.nodes")
    if gpus is None or "device.count" in values or not isinstance(gpus.value, int):
        return
    machines = 1 if nodes is None else nodes.value
    if isinstance(machines, int) and gpus.value > 0:
        from dataclasses import replace

        values["device.count"] = replace(gpus, value=gpus.value * machines)
