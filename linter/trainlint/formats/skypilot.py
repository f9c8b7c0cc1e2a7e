"""SkyPilot tasks: accelerators, machines, RAM, variables, and the shell text that sets up and runs.

Of alternatives (a set or a list of accelerators, `any_of`) it is not known which one runs. A name without a size is
the product SkyPilot's catalog lists under it: `A100` has 40 GB, `V100` 16.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlint.documents import Document, Mapping, Node, Scalar, Sequence
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment

if TYPE_CHECKING:
    from trainlint.formats.launch.accelerators import Values
    from trainlint.formats.launch.command_line import Cells
    from trainlint.formats.launch.embedded import Source

NAME = "skypilot"
RESOURCES = frozenset(
    (
        "accelerators", "cloud", "infra", "instance_type", "cpus", "memory", "use_spot", "disk_size", "disk_tier",
        "any_of", "ordered", "candidates", "image_id", "region", "zone", "network_tier", "ports", "accelerator_args",
    )
)  # fmt: skip
OPEN = frozenset(("instance_type", "any_of", "ordered", "candidates"))
"""Resources that may hold accelerators without their name."""
SIZES = {"A100": "A100 40GB", "V100": "V100 16GB"}
"""SkyPilot's names that elsewhere may be a larger product."""


def recognise(document: Document, root: Node | None) -> int:
    """Resources in SkyPilot's words with accelerators, or with a command that trains."""
    return 90 if is_task(document, root) and "working_dir" not in _names(root) else 0


def is_task(document: Document, root: Node | None) -> bool:
    """Whether a mapping is a task with accelerators or a training, and no service."""
    names = _names(root)
    if not isinstance(root, Mapping) or "resources" not in names or not names & {"run", "setup", "num_nodes"}:
        return False
    resources = root.get("resources")
    if not isinstance(resources, Mapping) or "service" in names or "kind" in names:
        return False
    known = resources.names()
    if not known & RESOURCES or "gpu" in known:
        return False
    if _accelerated(resources):
        return True
    from trainlint.formats.launch import job
    from trainlint.formats.launch.embedded import Source

    run = root.get("run")
    if not isinstance(run, Scalar) or not job.TRAINS.search(str(run.value)):
        return False
    return bool(job.trainings(Source(document).shell(run)))


def read(document: Document, root: Node | None) -> Fragment:
    """What the task gets, and what it installs and runs."""
    return read_as(NAME, document, root)


def read_as(name: str, document: Document, root: Node | None) -> Fragment:
    """The fragment of a task in SkyPilot's words, under a format's name."""
    from trainlint.formats.fragment import say
    from trainlint.formats.launch import job
    from trainlint.formats.launch.accelerators import total
    from trainlint.formats.launch.embedded import Source

    assert isinstance(root, Mapping)
    source = Source(document)
    values: Values = {}
    nodes = root.get("num_nodes")
    if isinstance(nodes, Scalar) and isinstance(nodes.value, int):
        values["parallel.nodes"] = say(name, "num_nodes", nodes, nodes.value)
    resources = root.get("resources")
    if isinstance(resources, Mapping):
        values |= _resources(name, resources)
        entry = root.entry("resources")
        if entry is not None and ((asks := _accelerated(resources)) or (name == NAME and not resources.names() & OPEN)):
            values["launch.accelerated"] = say(name, "resources", entry.key, asks)
    total(values)
    env = variables(source, root)
    known: dict[str, Cells | None] = {key: cells for key, (_, cells) in env.items()}
    known |= _given(source, values, nodes)
    values |= job.environment(env, name)
    setup, commands = (
        source.shell(node, known) if isinstance(node, Scalar) and isinstance(node.value, str) else ()
        for node in (root.get("setup"), root.get("run"))
    )
    folder = _text(root, "workdir") or _text(root, "working_dir")
    folder = "" if folder.startswith(("~", "/")) or "://" in folder else folder
    return job.fragment(name, document, root, commands, values, setup=setup, folder=folder, mounts=_mounts(root))


def complete(draft: Draft) -> None:
    """The defaults of the trainer whose arguments the command line carries."""
    from trainlint.formats.launch import job

    job.complete(draft)


def variables(source: Source, root: Mapping) -> dict[str, tuple[Scalar, Cells]]:
    """The task's `envs` that have a value."""
    envs = root.get("envs")
    return {
        key: (entry.value, source.cells(entry.value))
        for key, entry in (envs.index.items() if isinstance(envs, Mapping) else ())
        if isinstance(entry.value, Scalar) and entry.value.value is not None
    }


def _names(root: Node | None) -> frozenset[str]:
    return root.names() if isinstance(root, Mapping) else frozenset()


def _accelerated(resources: Mapping) -> bool:
    from trainlint.facts import instances

    written = resources.get("accelerators")
    if isinstance(written, Mapping | Sequence) or (isinstance(written, Scalar) and written.value is not None):
        return True
    kind = _text(resources, "instance_type")
    if kind and instances.find(kind) is not None:
        return True
    for key in ("any_of", "ordered", "candidates"):
        listed = resources.get(key)
        for item in listed.items if isinstance(listed, Sequence) else ():
            if isinstance(item, Mapping) and _accelerated(item):
                return True
    return False


def _resources(name: str, resources: Mapping) -> Values:
    from trainlint.formats.fragment import say
    from trainlint.formats.launch.accelerators import binary_size, named
    from trainlint.formats.reading import real

    values: Values = {}
    kind = resources.get("instance_type")
    if isinstance(kind, Scalar):
        values |= named(name, "instance_type", kind)
    values |= accelerators(name, resources.get("accelerators"))
    memory = resources.get("memory")
    if isinstance(memory, Scalar) and (size := binary_size(_least(memory), "g")) is not None:
        values["launch.memory"] = say(name, "memory", memory, float(size), "byte")
        if not memory.raw.strip("\"'").endswith(("+", "x")):
            values["device.host_memory"] = say(name, "memory", memory, size, "byte")
    cpus = resources.get("cpus")
    if isinstance(cpus, Scalar) and (cores := real(_least(cpus).value)) is not None:
        values["launch.cpus"] = say(name, "cpus", cpus, cores)
    disk = resources.get("disk_size")
    if isinstance(disk, Scalar) and (size := binary_size(disk, "g")) is not None:
        values["launch.disk"] = say(name, "disk_size", disk, size, "byte")
    image = resources.get("image_id")
    if isinstance(image, Scalar) and isinstance(image.value, str):
        values["launch.image"] = say(name, "image_id", image, image.value.removeprefix("docker:"))
    return values


def accelerators(name: str, node: Node | None) -> Values:
    """`A100:8`, `{A100: 8}`: the device and how many of it a machine has; of several alternatives neither."""
    from trainlint.formats.fragment import say

    match node:
        case Mapping() if len(node.index) == 1:
            key, entry = next(iter(node.index.items()))
            if not isinstance(entry.value, Scalar):
                return {}
            device, count, at, number = key, entry.value.value, entry.key, entry.value
        case Sequence() if len(node.items) == 1:
            return accelerators(name, node.items[0])
        case Scalar() if isinstance(node.value, str) and node.value and "{" not in node.value:
            device, _, text = node.value.partition(":")
            count, at, number = (text or 1), node, node
        case _:
            return {}
    values = {"device.name": say(name, "accelerators", at, SIZES.get(device, device))}
    if count is None:
        count = 1
    if str(count).isdecimal() and int(str(count)):
        values["launch.gpus"] = say(name, "accelerators", number, int(str(count)))
    return values


def _given(source: Source, values: Values, nodes: Node | None) -> dict[str, Cells | None]:
    """Variables that SkyPilot sets itself."""
    from trainlint.formats.launch.command_line import Cells

    at = source.cells(nodes) if isinstance(nodes, Scalar) else None
    found: dict[str, Cells | None] = {}
    for path, names in (
        ("parallel.nodes", ("SKYPILOT_NUM_NODES", "OUMI_NUM_NODES")),
        ("launch.gpus", ("SKYPILOT_NUM_GPUS_PER_NODE",)),
    ):
        value = values.get(path)
        if path == "parallel.nodes" and at is not None and at.stands:
            found |= dict.fromkeys(names, at)
        elif value is not None and value.place is not None:
            text = str(value.value)
            end = source.starts[value.place.end_line - 1] + value.place.end_column - 1
            quoted = value.raw[-1:] in ("'", '"')
            stands = range(end - quoted - len(text), end - quoted)
            found |= dict.fromkeys(names, Cells(text, tuple(stands)))
    return found


def _least(node: Scalar) -> Scalar:
    """`64+` as 64."""
    value = node.value.rstrip("+") if isinstance(node.value, str) else node.value
    return Scalar(value, str(value), node.place)


def _text(root: Mapping, key: str) -> str:
    node = root.get(key)
    return node.value if isinstance(node, Scalar) and isinstance(node.value, str) else ""


def _mounts(root: Mapping) -> dict[str, str]:
    """Paths of the task that come from the repository: `/configs: ./configs`."""
    mounts = root.get("file_mounts")
    return {
        target: entry.value.value
        for target, entry in (mounts.index.items() if isinstance(mounts, Mapping) else ())
        if isinstance(entry.value, Scalar) and isinstance(entry.value.value, str) and "://" not in entry.value.value
    }


FORMAT = Format(NAME, "SkyPilot task", recognise, read, complete)
