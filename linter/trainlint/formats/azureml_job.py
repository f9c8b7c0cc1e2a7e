"""Azure Machine Learning command jobs that train."""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node, Scalar
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, say

NAME = "azureml-job"


def recognise(document: Document, root: Node | None) -> int:
    """A job of Azure ML's schema, distributed or with a command that trains."""
    if not isinstance(root, Mapping) or not isinstance(command := root.get("command"), Scalar):
        return 0
    schema = root.get("$schema")
    if not (isinstance(schema, Scalar) and "azureml" in str(schema.value)) and not root.names() >= {
        "environment",
        "compute",
    }:
        return 0
    if "distribution" in root:
        return 90
    from trainlint.formats.launch import job
    from trainlint.formats.launch.embedded import Source

    return 90 if isinstance(command.value, str) and job.trainings(Source(document).shell(command)) else 0


def read(document: Document, root: Node | None) -> Fragment:
    """What the job gets, and its command."""
    from trainlint.formats.launch import job
    from trainlint.formats.launch.accelerators import Values, binary_size, named, total
    from trainlint.formats.launch.embedded import Source
    from trainlint.formats.reading import whole

    assert isinstance(root, Mapping)
    source = Source(document)
    values: Values = {}
    kind, command, shared = root.find("resources.instance_type"), root.get("command"), root.find("resources.shm_size")
    if isinstance(kind, Scalar):
        values |= named(NAME, "instance_type", kind)
    for key, path in (
        ("resources.instance_count", "parallel.nodes"),
        ("distribution.process_count_per_instance", "parallel.per_node"),
        ("limits.timeout", "launch.time"),
    ):
        node = root.find(key)
        if isinstance(node, Scalar) and (count := whole(node.value)) is not None:
            number: object = float(count) if path == "launch.time" else count
            values[path] = say(NAME, key.rpartition(".")[2], node, number)
    if isinstance(shared, Scalar) and (size := binary_size(shared)):
        values["launch.shm"] = say(NAME, "shm_size", shared, True)
        values["launch.shm_memory"] = say(NAME, "shm_size", shared, size, "byte")
    image = root.find("environment.image") or root.get("environment")
    if isinstance(image, Scalar) and isinstance(image.value, str):
        values["launch.image"] = say(NAME, "environment", image, image.value)
    total(values)
    env = job.variables(source, root.get("environment_variables"))
    values |= job.environment(env, NAME)
    text = isinstance(command, Scalar) and isinstance(command.value, str)
    commands = source.shell(command, job.known(env)) if text and isinstance(command, Scalar) else ()
    code = root.get("code")
    folder = code.value if isinstance(code, Scalar) and isinstance(code.value, str) and "://" not in code.value else ""
    return job.fragment(NAME, document, root, commands, values, folder=folder, managed="distribution" in root)


def complete(draft: Draft) -> None:
    """The defaults of the trainer whose arguments the command carries."""
    from trainlint.formats.launch import job

    job.complete(draft)


FORMAT = Format(NAME, "Azure Machine Learning job", recognise, read, complete)
