"""Ray and Anyscale jobs: an entrypoint that trains."""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node, Scalar
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, say

NAME = "ray-job"
_BESIDE = frozenset(("runtime_env", "compute_config", "working_dir", "image_uri", "containerfile", "submission_id"))


def recognise(document: Document, root: Node | None) -> int:
    """An entrypoint that starts a training, beside what a job says of its cluster."""
    entry = root.get("entrypoint") if isinstance(root, Mapping) else None
    if not isinstance(root, Mapping) or not isinstance(entry, Scalar) or not root.names() & _BESIDE:
        return 0
    from trainlint.formats.launch import job
    from trainlint.formats.launch.embedded import Source

    return 85 if isinstance(entry.value, str) and job.trainings(Source(document).shell(entry)) else 0


def read(document: Document, root: Node | None) -> Fragment:
    """What the job is told, and its command."""
    from trainlint.formats.launch import job
    from trainlint.formats.launch.embedded import Source

    assert isinstance(root, Mapping)
    source = Source(document)
    env = job.variables(source, root.get("env_vars"), root.find("runtime_env.env_vars"))
    values = job.environment(env, NAME)
    image, entry = root.get("image_uri"), root.get("entrypoint")
    if isinstance(image, Scalar) and isinstance(image.value, str):
        values["launch.image"] = say(NAME, "image_uri", image, image.value)
    commands = source.shell(entry, job.known(env)) if isinstance(entry, Scalar) else ()
    folder = root.get("working_dir") or root.find("runtime_env.working_dir")
    at = folder.value if isinstance(folder, Scalar) and isinstance(folder.value, str) else ""
    return job.fragment(NAME, document, root, commands, values, folder="" if "://" in at else at)


def complete(draft: Draft) -> None:
    """The defaults of the trainer whose arguments the entrypoint carries."""
    from trainlint.formats.launch import job

    job.complete(draft)


FORMAT = Format(NAME, "Ray job that trains", recognise, read, complete)
