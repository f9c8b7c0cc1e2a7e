"""The pods of a Kubernetes manifest: how many there are of each, what their main container asks for and runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainlint.documents import Entry, Mapping, Node, Scalar, Sequence
from trainlint.formats.fragment import say
from trainlint.formats.launch.accelerators import (
    LABELS,
    Values,
    is_accelerator,
    kubernetes_quantity,
    named,
)
from trainlint.formats.launch.command_line import Cells
from trainlint.formats.launch.embedded import Source
from trainlint.formats.reading import whole
from trainlint.run import Value

NAME = "kubernetes"
_COUNTS = ("replicas", "parallelism")
_HELPERS = frozenset(("launcher", "ps", "evaluator"))
"""Roles of a training job whose pods do not train."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod template: `count` pods of it (None: not known), `counted` where that stands, `role` as `Worker`."""

    spec: Mapping
    container: Mapping
    role: str = ""
    count: int | None = 1
    counted: Scalar | None = None

    @property
    def helps(self) -> bool:
        """Whether its role is to launch or to serve others, not to train."""
        return self.role.lower() in _HELPERS


def pods(root: Mapping) -> Iterator[Pod]:
    """The pod templates of a manifest, each with its main container."""
    yield from _below(root, "", 1, None)


def _below(node: Node | None, role: str, count: int | None, counted: Scalar | None) -> Iterator[Pod]:
    if isinstance(node, Sequence):
        for item in node.items:
            yield from _below(item, role, count, counted)
    if not isinstance(node, Mapping):
        return
    for key in _COUNTS:
        written = node.get(key)
        if isinstance(written, Scalar):
            more = whole(written.value)
            count = None if count is None or more is None else count * more
            counted = written
    containers = node.get("containers")
    if isinstance(containers, Sequence):
        found = [item for item in containers.items if isinstance(item, Mapping)]
        if found:
            yield Pod(node, max(found, key=_weight), role, count, counted)
        return
    for name, entry in node.index.items():
        if isinstance(entry.value, Mapping | Sequence):
            group = name.endswith("ReplicaSpecs") and isinstance(entry.value, Mapping)
            if group:
                assert isinstance(entry.value, Mapping)
                for kind, below in entry.value.index.items():
                    yield from _below(below.value, kind, count, counted)
            else:
                yield from _below(entry.value, role, count, counted)


def _weight(container: Mapping) -> tuple[bool, bool]:
    return bool(accelerators(container)), "command" in container or "args" in container


def accelerators(owner: Mapping) -> dict[str, Entry]:
    """The accelerators a container's limits (or requests) name."""
    for part in ("limits", "requests"):
        found = _devices(owner, part)
        if found:
            return found
    return {}


def _devices(owner: Mapping, part: str) -> dict[str, Entry]:
    resources = owner.get("resources")
    listed = resources.get(part) if isinstance(resources, Mapping) else None
    if not isinstance(listed, Mapping):
        return {}
    none = (0, "0", None)
    return {
        name: entry
        for name, entry in listed.index.items()
        if is_accelerator(name) and isinstance(entry.value, Scalar) and entry.value.value not in none
    }


def accelerated(pod: Pod) -> Values:
    """Whether the pod asks for devices, by number or by a claim; it says so or it does not at its container."""
    for entry in accelerators(pod.container).values():
        if isinstance(entry.value, Scalar):
            return {"launch.accelerated": say(NAME, entry.name, entry.value, True)}
    at = pod.container.get("name") or pod.container.get("image")
    if "resourceClaims" in pod.spec or pod.container.find("resources.claims") is not None or not isinstance(at, Scalar):
        return {}
    note = "no accelerator is among the resources"
    return {"launch.accelerated": Value(False, "derived", "resources", at.place, at.raw, note=note, file_format=NAME)}


def asked(owner: Mapping) -> Values:
    """What the `resources` of a container ask for: devices, RAM, cores, disk."""
    values: Values = {}
    for path, part in (("launch.gpus_requested", "requests"), ("launch.gpus", "limits")):
        for name, entry in _devices(owner, part).items():
            assert isinstance(entry.value, Scalar)
            count = whole(entry.value.value)
            if count is not None:
                values[path] = say(NAME, name, entry.value, count)
            if "/mig-" in name:
                values["device.name"] = say(NAME, name, entry.key, name.partition("/")[2])
    if "launch.gpus" not in values and "launch.gpus_requested" in values and not _devices(owner, "limits"):
        values["launch.gpus"] = values["launch.gpus_requested"]
    paths = {"memory": "launch.memory", "cpu": "launch.cpus", "ephemeral-storage": "launch.disk"}
    for part in ("requests", "limits"):
        for name, path in paths.items():
            node = owner.find(f"resources.{part}")
            stated = node.get(name) if isinstance(node, Mapping) else None
            size = kubernetes_quantity(stated)
            if size is None or not isinstance(stated, Scalar):
                continue
            number: object = int(size) if path == "launch.disk" else size
            values[path] = say(NAME, name, stated, number, "byte" if name != "cpu" else "")
            if name == "memory" and part == "limits" and size >= 1:
                values["device.host_memory"] = say(NAME, name, stated, int(size), "byte")
    return values


def placed(spec: Mapping) -> Values:
    """The device that node labels name: in `nodeSelector`, or as the only value of a required affinity."""
    found: Values = {}
    selector = spec.get("nodeSelector")
    labels = list(selector.index.items()) if isinstance(selector, Mapping) else []
    pairs: list[tuple[str, Node]] = [(name, entry.value) for name, entry in labels]
    terms = spec.find("affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms")
    if isinstance(terms, Sequence) and len(terms.items) == 1 and isinstance(terms.items[0], Mapping):
        expressions = terms.items[0].get("matchExpressions")
        for item in expressions.items if isinstance(expressions, Sequence) else ():
            if not isinstance(item, Mapping):
                continue
            key, operator, choices = item.get("key"), item.get("operator"), item.get("values")
            one = isinstance(choices, Sequence) and len(choices.items) == 1
            if isinstance(key, Scalar) and isinstance(operator, Scalar) and operator.value == "In" and one:
                assert isinstance(choices, Sequence)
                pairs.append((str(key.value), choices.items[0]))
    for name, node in pairs:
        if LABELS.search(name) and isinstance(node, Scalar) and isinstance(node.value, str):
            for path, value in named(NAME, name, node).items():
                found.setdefault(path, value)
    return found


def shared_memory(spec: Mapping, container: Mapping) -> Values:
    """Whether the container gets more than the 64 MiB of `/dev/shm` that a runtime gives by default."""
    ipc = spec.get("hostIPC")
    if isinstance(ipc, Scalar) and ipc.value is True:
        return {"launch.shm": say(NAME, "hostIPC", ipc, True)}
    volumes = {}
    listed = spec.get("volumes")
    for item in listed.items if isinstance(listed, Sequence) else ():
        if isinstance(item, Mapping) and isinstance(name := item.get("name"), Scalar):
            volumes[name.value] = item
    mounts = container.get("volumeMounts")
    for item in mounts.items if isinstance(mounts, Sequence) else ():
        path = item.get("mountPath") if isinstance(item, Mapping) else None
        if not isinstance(path, Scalar) or str(path.value).rstrip("/") != "/dev/shm":
            continue
        assert isinstance(item, Mapping)
        name = item.get("name")
        volume = volumes.get(name.value) if isinstance(name, Scalar) else None
        found: Values = {"launch.shm": say(NAME, "mountPath", path, True)}
        limit = volume.find("emptyDir.sizeLimit") if volume is not None else None
        size = kubernetes_quantity(limit)
        if size is not None and isinstance(limit, Scalar):
            found["launch.shm_memory"] = say(NAME, "sizeLimit", limit, int(size), "byte")
        return found
    at = container.get("name") or container.get("image")
    if not isinstance(at, Scalar):
        return {}
    note = "nothing is mounted at /dev/shm"
    return {"launch.shm": Value(False, "derived", "containers", at.place, at.raw, note=note, file_format=NAME)}


def variables(source: Source, owner: Mapping) -> dict[str, tuple[Scalar, Cells]]:
    """The variables of an `env` list that have a plain value."""
    found: dict[str, tuple[Scalar, Cells]] = {}
    listed = owner.get("env")
    for item in listed.items if isinstance(listed, Sequence) else ():
        if isinstance(item, Mapping):
            name, value = item.get("name"), item.get("value")
            if isinstance(name, Scalar) and isinstance(value, Scalar) and value.raw:
                found[str(name.value)] = (value, source.cells(value))
    return found
