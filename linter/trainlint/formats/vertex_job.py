"""Vertex AI custom jobs with accelerators or a training: the first worker pool that has either is the run's."""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node, Scalar, Sequence
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, say

NAME = "vertex-job"


def recognise(document: Document, root: Node | None) -> int:
    """Worker pools of which one has accelerators."""
    return 90 if any(_accelerated(pool) for pool in _pools(root)) else 0


def read(document: Document, root: Node | None) -> Fragment:
    """What the pools with accelerators have, and the command of the first of them."""
    from trainlint.formats.launch import job
    from trainlint.formats.launch.accelerators import Values, named, total
    from trainlint.formats.launch.embedded import Source
    from trainlint.formats.reading import whole

    source = Source(document)
    pools = [pool for pool in _pools(root) if _accelerated(pool)]
    pool = pools[0]
    values: Values = {}
    kind, device, count = (
        pool.find(f"machineSpec.{key}") for key in ("machineType", "acceleratorType", "acceleratorCount")
    )
    if isinstance(kind, Scalar):
        values |= named(NAME, "machineType", kind)
    if isinstance(device, Scalar) and isinstance(device.value, str):
        values["device.name"] = say(NAME, "acceleratorType", device, device.value.replace("_", " "))
    if isinstance(count, Scalar) and (number := whole(count.value)):
        values["launch.gpus"] = say(NAME, "acceleratorCount", count, number)
    written = [node for one in pools if isinstance(node := one.get("replicaCount"), Scalar)]
    counts = [whole(node.value) for node in written]
    if written and len(written) == len(pools) and None not in counts:
        values["parallel.nodes"] = say(NAME, "replicaCount", written[-1], sum(number or 0 for number in counts))
    image = pool.find("containerSpec.imageUri")
    if isinstance(image, Scalar) and isinstance(image.value, str):
        values["launch.image"] = say(NAME, "imageUri", image, image.value)
    total(values)
    env = job.variables(source, pool.find("containerSpec.env"))
    values |= job.environment(env, NAME)
    words = [
        item
        for key in ("command", "args")
        if isinstance(listed := pool.find(f"containerSpec.{key}"), Sequence)
        for item in listed.items
        if isinstance(item, Scalar)
    ]
    return job.fragment(NAME, document, root, source.executed(words, job.known(env)), values)


def complete(draft: Draft) -> None:
    """The defaults of the trainer whose arguments the command carries."""
    from trainlint.formats.launch import job

    job.complete(draft)


def _pools(root: Node | None) -> list[Mapping]:
    if not isinstance(root, Mapping):
        return []
    for key in ("workerPoolSpecs", "jobSpec.workerPoolSpecs", "trialJobSpec.workerPoolSpecs"):
        listed = root.find(key)
        if isinstance(listed, Sequence):
            return [item for item in listed.items if isinstance(item, Mapping)]
    return []


def _accelerated(pool: Mapping) -> bool:
    from trainlint.facts import instances

    kind = pool.find("machineSpec.machineType")
    known = isinstance(kind, Scalar) and isinstance(kind.value, str) and instances.find(kind.value) is not None
    return known or isinstance(pool.find("machineSpec.acceleratorType"), Scalar)


FORMAT = Format(NAME, "Vertex AI custom job", recognise, read, complete)
