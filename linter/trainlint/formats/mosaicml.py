"""MosaicML (mcli) runs: `compute` says how many GPUs of which kind over all machines, `command` is a shell text."""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node, Scalar
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, say

NAME = "mosaicml"
_BESIDE = frozenset(("image", "command", "integrations", "run_name", "scheduling", "env_variables", "parameters"))


def recognise(document: Document, root: Node | None) -> int:
    """A run with a `compute` of GPUs."""
    if not isinstance(root, Mapping) or len(root.names() & _BESIDE) < 2:
        return 0
    compute = root.get("compute")
    return 85 if isinstance(compute, Mapping) and "gpus" in compute else 0


def read(document: Document, root: Node | None) -> Fragment:
    """What the run gets, and its command."""
    from trainlint.formats.launch import job
    from trainlint.formats.launch.accelerators import Values, named
    from trainlint.formats.launch.embedded import Source
    from trainlint.formats.reading import whole

    assert isinstance(root, Mapping)
    source = Source(document)
    values: Values = {}
    gpus, kind, instance = (root.find(f"compute.{key}") for key in ("gpus", "gpu_type", "instance"))
    if isinstance(instance, Scalar):
        values |= named(NAME, "instance", instance)
        values.pop("launch.gpus", None)
    if isinstance(kind, Scalar) and isinstance(kind.value, str) and kind.value != "none":
        values["device.name"] = say(NAME, "gpu_type", kind, kind.value.replace("_", " "))
    if isinstance(gpus, Scalar) and (count := whole(gpus.value)):
        values["device.count"] = say(NAME, "gpus", gpus, count)
    image = root.get("image")
    if isinstance(image, Scalar) and isinstance(image.value, str):
        values["launch.image"] = say(NAME, "image", image, image.value)
    env = job.variables(source, root.get("env_variables"))
    values |= job.environment(env, NAME)
    command = root.get("command")
    text = isinstance(command, Scalar) and isinstance(command.value, str)
    commands = source.shell(command, job.known(env)) if text and isinstance(command, Scalar) else ()
    return job.fragment(NAME, document, root, commands, values)


def complete(draft: Draft) -> None:
    """The defaults of the trainer whose arguments the command carries."""
    from trainlint.formats.launch import job

    job.complete(draft)


FORMAT = Format(NAME, "MosaicML run", recognise, read, complete)
