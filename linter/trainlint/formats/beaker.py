"""Beaker experiments: tasks with GPUs, each with its command, variables and replicas."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.documents import Document, Mapping, Node, Scalar, Sequence
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, say

NAME = "beaker"


def recognise(document: Document, root: Node | None) -> int:
    """Tasks with a GPU each."""
    if not isinstance(root, Mapping) or not root.names() >= {"tasks", "version"}:
        return 0
    return 85 if any(isinstance(task.find("resources.gpuCount"), Scalar) for task in _tasks(root)) else 0


def read(document: Document, root: Node | None) -> Fragment:
    """The tasks, each a fragment."""
    from trainlint.formats.launch import job

    assert isinstance(root, Mapping)
    return job.together([_task(document, task) for task in _tasks(root)])


def complete(draft: Draft) -> None:
    """The defaults of the trainer whose arguments a command carries."""
    from trainlint.formats.launch import job

    job.complete(draft)


def _tasks(root: Mapping) -> Iterator[Mapping]:
    listed = root.get("tasks")
    yield from (item for item in listed.items if isinstance(item, Mapping)) if isinstance(listed, Sequence) else ()


def _task(document: Document, task: Mapping) -> Fragment:
    from trainlint.formats.launch import job
    from trainlint.formats.launch.accelerators import Values, binary_size, total
    from trainlint.formats.launch.embedded import Source
    from trainlint.formats.reading import real, whole

    source = Source(document)
    values: Values = {}
    for key, path in (("resources.gpuCount", "launch.gpus"), ("replicas", "parallel.nodes")):
        node = task.find(key)
        if isinstance(node, Scalar) and (count := whole(node.value)):
            values[path] = say(NAME, key.rpartition(".")[2], node, count)
    cpus, memory, shm = (task.find(f"resources.{key}") for key in ("cpuCount", "memory", "sharedMemory"))
    if isinstance(cpus, Scalar) and (cores := real(cpus.value)) is not None:
        values["launch.cpus"] = say(NAME, "cpuCount", cpus, cores)
    if isinstance(memory, Scalar) and (size := binary_size(memory)):
        values["launch.memory"] = say(NAME, "memory", memory, float(size), "byte")
    if isinstance(shm, Scalar) and (size := binary_size(shm)):
        values["launch.shm"] = say(NAME, "sharedMemory", shm, True)
        values["launch.shm_memory"] = say(NAME, "sharedMemory", shm, size, "byte")
    for key in ("image.docker", "image.beaker"):
        image = task.find(key)
        if isinstance(image, Scalar) and isinstance(image.value, str):
            values["launch.image"] = say(NAME, key, image, image.value)
    total(values)
    env = job.variables(source, task.get("envVars"))
    values |= job.environment(env, NAME)
    words = [
        item
        for key in ("command", "arguments")
        if isinstance(listed := task.get(key), Sequence)
        for item in listed.items
        if isinstance(item, Scalar)
    ]
    return job.fragment(NAME, document, task, source.executed(words, job.known(env)), values)


FORMAT = Format(NAME, "Beaker experiment", recognise, read, complete)
