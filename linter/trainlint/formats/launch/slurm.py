"""`#SBATCH` directives: what a job asks of the cluster.

Slurm reads them at the top of the script, up to its first command.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainlint.documents import Document, Place

_DIRECTIVE = re.compile(r"#SBATCH\s+(?:--([\w-]+)|-(\w))(?:\s*=\s*|\s+|$)(\"[^\"]*\"|'[^']*'|[^\s#]*)")
_SHORT = {
    "N": "nodes",
    "n": "ntasks",
    "c": "cpus-per-task",
    "G": "gpus",
    "t": "time",
    "p": "partition",
    "C": "constraint",
}
_MEMORY = re.compile(r"(\d+)([KMGT]?)", re.IGNORECASE)
_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<clock>\d+(?::\d+){0,2})")
_UNITS = {"K": 1 << 10, "": 1 << 20, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_GRES = re.compile(r"gpu(?::(?P<name>[A-Za-z][\w.-]*))?(?::(?P<count>\d+))?(?:\(.*\))?")
_GPUS = re.compile(r"(?:(?P<name>[A-Za-z][\w.-]*):)?(?P<count>\d+)")


@dataclass(frozen=True, slots=True)
class Directive:
    """One option: its long name, its text, and where the text stands."""

    name: str
    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Gpus:
    """GPUs asked for: how many, of which name, and whether on every node or in the whole job."""

    count: int | None
    name: str
    per_node: bool
    directive: Directive


def directives(document: Document) -> dict[str, Directive]:
    """The directives by long name; of a repeated one the last counts."""
    found: dict[str, Directive] = {}
    if "#SBATCH" not in document.text:
        return found
    for number, line in enumerate(document.text.splitlines(), 1):
        match = _DIRECTIVE.match(line)
        if match is not None:
            name = match[1] or _SHORT.get(match[2], match[2])
            text = match[3].strip("\"'")
            quoted = len(match[3]) - len(text) > 1
            start = match.start(3) + 1 + quoted
            found[name] = Directive(name, text, Place(document.file, number, start, number, start + len(text)))
        elif line.strip() and not line.startswith("#"):
            break
    return found


def whole(directive: Directive | None) -> int | None:
    """A directive's number, or None."""
    return int(directive.text) if directive is not None and directive.text.isdigit() else None


def gpus(found: dict[str, Directive]) -> Gpus | None:
    """The GPUs that a job asks for, or None where it asks for none that can be read."""
    if (gres := found.get("gres")) is not None:
        for part in gres.text.split(","):
            match = _GRES.fullmatch(part.removeprefix("gres/").removeprefix("gres:"))
            if match is not None:
                return Gpus(int(match["count"] or 1), match["name"] or "", True, gres)
    for name, per_node in (("gpus-per-node", True), ("gpus", False)):
        directive = found.get(name)
        match = _GPUS.fullmatch(directive.text) if directive is not None else None
        if directive is not None and match is not None:
            return Gpus(int(match["count"]), match["name"] or "", per_node, directive)
    return None


def seconds(directive: Directive | None) -> float | None:
    """`--time` in seconds: minutes, `MM:SS`, `HH:MM:SS`, and with days before them `D-HH`, `D-HH:MM`, `D-HH:MM:SS`."""
    match = _TIME.fullmatch(directive.text) if directive is not None else None
    if match is None:
        return None
    numbers = [int(part) for part in match["clock"].split(":")]
    if match["days"] is None:
        hours, minutes, rest = {1: (0, *numbers, 0), 2: (0, *numbers)}.get(len(numbers), tuple(numbers))
    else:
        hours, minutes, rest = (*numbers, 0, 0)[:3]
    return float(int(match["days"] or 0) * 86400 + hours * 3600 + minutes * 60 + rest)


def memory(directive: Directive | None) -> int | None:
    """`--mem` in bytes per node: MiB without a suffix; None for 0 (all of it) and for what Slurm refuses."""
    match = _MEMORY.fullmatch(directive.text) if directive is not None else None
    size = int(match[1]) * _UNITS[match[2].upper()] if match is not None else 0
    return size or None
