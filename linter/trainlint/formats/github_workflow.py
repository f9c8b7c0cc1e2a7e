"""GitHub workflows: only those with a step that trains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlint.documents import Document, Mapping, Node, Scalar, Sequence
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, say

if TYPE_CHECKING:
    from trainlint.formats.launch.command_line import Command

NAME = "github-workflow"


def recognise(document: Document, root: Node | None) -> int:
    """A step that starts a training."""
    if not isinstance(root, Mapping) or not root.names() >= {"jobs", "on"}:
        return 0
    from trainlint.formats.launch import job

    return 85 if job.TRAINS.search(document.text) and _fragments(document, root) else 0


def read(document: Document, root: Node | None) -> Fragment:
    """The steps that train, each a fragment."""
    from trainlint.formats.launch import job

    assert isinstance(root, Mapping)
    return job.together(_fragments(document, root))


def complete(draft: Draft) -> None:
    """The defaults of the trainer whose arguments a step passes."""
    from trainlint.formats.launch import job

    job.complete(draft)


def _fragments(document: Document, root: Mapping) -> list[Fragment]:
    from trainlint.formats.launch import job
    from trainlint.formats.launch.accelerators import Values
    from trainlint.formats.launch.embedded import Source
    from trainlint.formats.reading import real

    source = Source(document)
    found: list[Fragment] = []
    jobs = root.get("jobs")
    for entry in jobs.index.values() if isinstance(jobs, Mapping) else ():
        one = entry.value
        steps = one.get("steps") if isinstance(one, Mapping) else None
        if not isinstance(one, Mapping) or not isinstance(steps, Sequence):
            continue
        values: Values = {}
        limit, image = one.get("timeout-minutes"), one.find("container.image") or one.get("container")
        if isinstance(limit, Scalar) and (minutes := real(limit.value)) is not None:
            values["launch.time"] = say(NAME, "timeout-minutes", limit, minutes * 60)
        if isinstance(image, Scalar) and isinstance(image.value, str):
            values["launch.image"] = say(NAME, "image", image, image.value)
        before: list[Command] = []
        for step in steps.items:
            run = step.get("run") if isinstance(step, Mapping) else None
            if not isinstance(step, Mapping) or not isinstance(run, Scalar) or not isinstance(run.value, str):
                continue
            env = job.variables(source, root.get("env"), one.get("env"), step.get("env"))
            commands = source.shell(run, job.known(env))
            if job.trainings(commands):
                folder = step.get("working-directory") or one.find("defaults.run.working-directory")
                at = folder.value if isinstance(folder, Scalar) and isinstance(folder.value, str) else ""
                more = {**values, **job.environment(env, NAME)}
                found.append(job.fragment(NAME, document, step, commands, more, setup=before, folder=at))
            before += commands
    return found


FORMAT = Format(NAME, "GitHub workflow that trains", recognise, read, complete)
