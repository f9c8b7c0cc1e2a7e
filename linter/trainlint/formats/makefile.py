"""Makefiles with recipes that train. Each line of a recipe is a shell text of its own.

`$$` is the shell's `$`; variables that the Makefile sets to plain words are put in, others are not known here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainlint.documents import Document, Node
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainlint.formats.launch.command_line import Cells, Command

NAME = "makefile"
_HINT = re.compile(
    r"^\t.*(?:accelerate|torchrun|torch\.distributed|deepspeed|python|llamafactory|axolotl|tune run|mlx_lm|trl )", re.M
)
_RULE = re.compile(r"^[^\s#:=][^#=\n]*:(?!=)", re.MULTILINE)
_VARIABLE = re.compile(
    r"^(?:export\s+|override\s+)?([A-Za-z_][\w.-]*)[ ]*(:{0,3}|\?|\+)=[ \t]*([^\n#]*?)[ \t]*(?:#.*)?$", re.M
)
_USED = re.compile(r"\$(?:\$|\((?P<round>[\w.-]+)\)|\{(?P<curly>[\w.-]+)\}|\([^()]*(?:\([^()]*\)[^()]*)*\)|[@<^*?%+])")


def recognise(document: Document, root: Node | None) -> int:
    """A recipe that starts a training."""
    if document.syntax != "text" or not _HINT.search(document.text) or not _RULE.search(document.text):
        return 0
    from trainlint.formats.launch import job

    return 80 if any(job.trainings(commands) for commands in _recipes(document)) else 0


def read(document: Document, root: Node | None) -> Fragment:
    """The recipes that train, each launch a fragment."""
    from trainlint.formats.launch import job

    found = [commands for commands in _recipes(document) if job.trainings(commands)]
    return job.together([job.fragment(NAME, document, None, commands, {}) for commands in found])


def complete(draft: Draft) -> None:
    """The defaults of the trainer whose arguments a recipe carries."""
    from trainlint.formats.launch import job

    job.complete(draft)


def _recipes(document: Document) -> Iterator[tuple[Command, ...]]:
    """The commands of each line of a recipe, lines that go on taken together."""
    from trainlint.formats.launch.command_line import Cells
    from trainlint.formats.launch.embedded import Source

    source = Source(document)
    variables = _variables(document.text)
    text: str = ""
    stands: list[int] = []
    for start, end in _lines(document.text):
        line = document.text[start:end]
        inside = bool(text)
        if not inside and not line.startswith("\t"):
            continue
        skip = len(line) - len(line.lstrip("\t" if inside else "\t @-+"))
        text += line[skip:] + "\n"
        stands += range(start + skip, end + 1)
        if not line.endswith("\\"):
            yield source.shell_text(_expanded(Cells(text, tuple(stands)), variables, 0))
            text, stands = "", []


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, end
        start = end + 1


def _variables(text: str) -> dict[str, Cells | None]:
    """The variables set once; of those set again, added to or computed the value is not known."""
    from trainlint.formats.launch.command_line import Cells

    found: dict[str, Cells | None] = {}
    for match in _VARIABLE.finditer(text):
        again = match[1] in found or match[2] == "+" or match[3].endswith("\\")
        cells = Cells(match[3], tuple(range(match.start(3), match.end(3))))
        found[match[1]] = None if again else cells
    return found


def _expanded(cells: Cells, variables: dict[str, Cells | None], depth: int) -> Cells:
    from trainlint.formats.launch.command_line import UNKNOWN, Cells

    text = ""
    stands: list[int] = []
    at = 0
    for found in _USED.finditer(cells.text):
        where = cells.stands[found.start()]
        name = found["round"] or found["curly"]
        put = Cells("$", (where,)) if found[0] == "$$" else Cells(UNKNOWN, (where,))
        value = variables.get(name) if name else None
        if value is not None and depth < 5:
            put = _expanded(value, variables, depth + 1)
        text += cells.text[at : found.start()] + put.text
        stands += [*cells.stands[at : found.start()], *put.stands]
        at = found.end()
    return Cells(text + cells.text[at:], (*stands, *cells.stands[at:]))


FORMAT = Format(NAME, "Makefile that trains", recognise, read, complete)
