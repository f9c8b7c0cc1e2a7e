"""Docker Compose files with a service that trains: its GPUs, memory, variables, mounts and command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlint.documents import Document, Mapping, Node, Scalar, Sequence
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, say
from trainlint.run import Value

if TYPE_CHECKING:
    from trainlint.formats.launch.accelerators import Values
    from trainlint.formats.launch.command_line import Command
    from trainlint.formats.launch.embedded import Source

NAME = "docker-compose"


def recognise(document: Document, root: Node | None) -> int:
    """A service whose command trains."""
    services = root.get("services") if isinstance(root, Mapping) else None
    if not isinstance(services, Mapping):
        return 0
    from trainlint.formats.launch import job

    return 85 if job.TRAINS.search(document.text) and _training(document, services) else 0


def read(document: Document, root: Node | None) -> Fragment:
    """The services that train, each a fragment."""
    from trainlint.formats.launch import job

    services = root.get("services") if isinstance(root, Mapping) else None
    assert isinstance(services, Mapping)
    return job.together([_service(document, service, run) for service, run in _training(document, services)])


def complete(draft: Draft) -> None:
    """The defaults of the trainer whose arguments a command carries."""
    from trainlint.formats.launch import job

    job.complete(draft)


def _training(document: Document, services: Mapping) -> list[tuple[Mapping, tuple[Command, ...]]]:
    from trainlint.formats.launch import job
    from trainlint.formats.launch.embedded import Source

    source = Source(document)
    found = []
    for entry in services.index.values():
        if isinstance(entry.value, Mapping):
            run = _commands(source, entry.value)
            if job.trainings(run):
                found.append((entry.value, run))
    return found


def _commands(source: Source, service: Mapping) -> tuple[Command, ...]:
    from trainlint.formats.launch import job

    known = job.known(job.variables(source, service.get("environment")))
    words: list[Scalar] = []
    for key in ("entrypoint", "command"):
        match service.get(key):
            case Sequence() as listed:
                words += [item for item in listed.items if isinstance(item, Scalar)]
            case Scalar() as text if isinstance(text.value, str):
                if key == "command" and not words:
                    return source.shell(text, known)
                words.append(text)
    return source.executed(words, known)


def _service(document: Document, service: Mapping, run: tuple[Command, ...]) -> Fragment:
    from trainlint.formats.launch import job
    from trainlint.formats.launch.accelerators import binary_size, total
    from trainlint.formats.launch.embedded import Source

    values: Values = _devices(service)
    for key, path in (
        ("mem_limit", "device.host_memory"),
        ("deploy.resources.limits.memory", "device.host_memory"),
        ("shm_size", "launch.shm_memory"),
    ):
        node = service.find(key)
        if isinstance(node, Scalar) and (size := binary_size(node)):
            values[path] = say(NAME, key.rpartition(".")[2], node, size, "byte")
    shared, image = service.get("ipc") or service.get("shm_size"), service.get("image")
    if isinstance(shared, Scalar):
        values["launch.shm"] = say(NAME, "ipc" if "ipc" in service else "shm_size", shared, True)
    elif isinstance(image, Scalar) and "/dev/shm" not in document.text and "extends" not in service:
        note = "Docker's default of 64 MiB"
        values["launch.shm"] = Value(False, "derived", "image", image.place, image.raw, note=note, file_format=NAME)
    if isinstance(image, Scalar) and isinstance(image.value, str):
        values["launch.image"] = say(NAME, "image", image, image.value)
    total(values)
    values |= job.environment(job.variables(Source(document), service.get("environment")), NAME)
    folder = service.get("working_dir")
    at = folder.value if isinstance(folder, Scalar) and isinstance(folder.value, str) else ""
    return job.fragment(NAME, document, service, run, values, folder=at, mounts=_mounts(service))


def _devices(service: Mapping) -> Values:
    """How many GPUs a service gets: by number, or by their ids; `all` is not known."""
    values: Values = {}
    gpus = service.get("gpus")
    if isinstance(gpus, Scalar) and isinstance(gpus.value, int):
        values["launch.gpus"] = say(NAME, "gpus", gpus, gpus.value)
    devices = service.find("deploy.resources.reservations.devices")
    for item in devices.items if isinstance(devices, Sequence) else ():
        if not isinstance(item, Mapping):
            continue
        count, ids = item.get("count"), item.get("device_ids")
        if isinstance(count, Scalar) and isinstance(count.value, int):
            values["launch.gpus"] = say(NAME, "count", count, count.value)
        elif isinstance(ids, Sequence) and ids.items and isinstance(ids.items[0], Scalar):
            values["launch.gpus"] = say(NAME, "device_ids", ids.items[0], len(ids.items))
    return values


def _mounts(service: Mapping) -> dict[str, str]:
    """Folders of the repository by where the container sees them."""
    found: dict[str, str] = {}
    volumes = service.get("volumes")
    for item in volumes.items if isinstance(volumes, Sequence) else ():
        text = str(item.value) if isinstance(item, Scalar) else ""
        source, _, target = text.partition(":")
        if source.startswith("."):
            found[target.partition(":")[0]] = source
    return found


FORMAT = Format(NAME, "Docker Compose file that trains", recognise, read, complete)
