"""Launch configs that lie beside each other as one for each machine of a job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePath

from trainlint.documents import plain
from trainlint.formats import Fragment
from trainlint.formats.launch.started import trainings

RANK = "machine_rank"


def mark_machines(fragments: Iterable[Fragment]) -> None:
    """Tell accelerate configs of the machines of one job about each other: `facts["machines"]`, in order of the files.

    They are those of one folder that agree in everything but the rank. Where a launcher gives the rank, the files do
    not decide, and nothing is told.
    """
    fragments = list(fragments)
    groups: dict[tuple[PurePath, str], list[Fragment]] = defaultdict(list)
    for fragment in fragments:
        machines = fragment.written("num_machines") if fragment.format == "accelerate" else None
        if isinstance(machines, int) and machines > 1:
            content = plain(fragment.root)
            if isinstance(content, dict):
                content.pop(RANK, None)
                groups[PurePath(fragment.file).parent, repr(sorted(content.items()))].append(fragment)
    if not any(len(group) > 1 for group in groups.values()):
        return
    if any(RANK in start.options for fragment in fragments if fragment.starts for start in trainings(fragment)):
        return
    for group in groups.values():
        if len(group) > 1:
            group.sort(key=lambda fragment: fragment.file)
            for fragment in group:
                fragment.facts["machines"] = tuple(group)
