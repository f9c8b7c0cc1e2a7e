"""Oumi's job configs: SkyPilot's words with a `working_dir`, also for clusters of Oumi's own."""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node, Scalar
from trainlint.formats import skypilot
from trainlint.formats.format import Format
from trainlint.formats.fragment import Fragment

NAME = "oumi-job"


def recognise(document: Document, root: Node | None) -> int:
    """A task with a working folder that has accelerators, trains, or goes to a cluster under Oumi."""
    if not isinstance(root, Mapping) or not root.names() >= {"working_dir", "resources", "run"}:
        return 0
    run, resources = root.get("run"), root.get("resources")
    if not isinstance(run, Scalar) or not isinstance(resources, Mapping) or not isinstance(run.value, str):
        return 0
    return 90 if skypilot.is_task(document, root) or "OUMI_" in run.value else 0


def read(document: Document, root: Node | None) -> Fragment:
    """What the job gets, and what it installs and runs."""
    return skypilot.read_as(NAME, document, root)


FORMAT = Format(NAME, "Oumi job", recognise, read, skypilot.complete)
