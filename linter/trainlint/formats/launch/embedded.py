"""Commands inside other files: shell text in a YAML value, or a list of words; each word knows its place in the file.

`Source.cells` says where in the file every character of a value stands, however the value is written: plain, quoted,
or as a block whose indentation is no part of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from trainlint.documents import Document, Scalar
from trainlint.formats.launch.command_line import UNKNOWN, Cells, Command, Reader, Word

Environment = Mapping[str, Cells | None]
"""Variables that are set before a command runs; None where the value is not known."""

NOTHING: Environment = {}
_HEADER = re.compile(r"(?:[&!]\S*\s+)*([|>])[^\n]*\n")
_REACH = 400
"""Farthest that a character is looked for behind the one before it: what lies between is indentation or an escape."""
_OPEN = re.compile(r"\$\{?\w+\}?|\$\([^)]*\)|\{\{.*?\}\}", re.DOTALL)
_NAMED = re.compile(r"\$\(([A-Za-z_]\w*)\)")
_SHELLS = frozenset(("bash", "sh", "zsh", "dash"))


class Source:
    """A document whose values hold commands."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.text = document.text
        self.starts = Reader(document.file, document.text).starts

    def cells(self, node: Scalar) -> Cells:
        """A scalar's text, and where in the file each of its characters stands."""
        value = node.value if isinstance(node.value, str) else node.raw
        at = self.starts[node.place.line - 1] + node.place.column - 1
        if node.plain:
            found = self.text.find(value, at, at + len(value) + _REACH)
            if found >= 0 and value:
                return Cells(value, tuple(range(found, found + len(value))))
            return Cells(value, _aligned(value, self.text[at : at + 2 * len(value) + _REACH], at))
        if node.raw[1:-1] == value:
            return Cells(value, tuple(range(at + 1, at + 1 + len(value))))
        header = _HEADER.match(node.raw)
        if header is None:
            return Cells(value, _aligned(value, node.raw, at, 1))
        stands = _lines(value, node.raw[header.end() :], at + header.end()) if header[1] == "|" else None
        return Cells(value, stands or _aligned(value, node.raw, at, header.end()))

    def shell(self, node: Scalar, known: Environment = NOTHING) -> tuple[Command, ...]:
        """The commands of a value that a shell runs."""
        return self.shell_text(self.cells(node), known)

    def shell_text(self, cells: Cells, known: Environment = NOTHING) -> tuple[Command, ...]:
        """The commands of shell text whose characters stand at these positions of the file."""
        reader = self._reader(known)
        reader.read(cells.text, cells.stands)
        return tuple(reader.found)

    def lines(self, nodes: Iterable[Scalar], known: Environment = NOTHING) -> tuple[Command, ...]:
        """The commands of a list whose items are lines of one shell text."""
        text = ""
        stands: list[int] = []
        for cells in map(self.cells, nodes):
            if cells.stands:
                text += cells.text + "\n"
                stands += [*cells.stands, cells.stands[-1]]
        return self.shell_text(Cells(text, tuple(stands)), known)

    def executed(self, nodes: Iterable[Scalar], known: Environment = NOTHING) -> tuple[Command, ...]:
        """The command that a list of words is, and those of the shell text it holds (`[bash, -c, …]`).

        `$(NAME)` is a variable of `known`, as in Kubernetes; other variables and templates are not known here.
        """
        reader = self._reader(known)
        written = [self.cells(node) for node in nodes]
        if not written:
            return ()
        inner = written[0].text.rpartition("/")[2] in _SHELLS
        words = []
        for before in written:
            cells = _substituted(before, known)
            cells = cells if inner else _closed(cells)
            where = before.stands or (0,)
            place = reader.place(where[0], where[-1] + 1)
            raw = self.text[where[0] : where[-1] + 1] if before.stands else ""
            words.append(Word(None if UNKNOWN in cells.text else cells.text, raw, place, place, cells))
        first, last = words[0].place, words[-1].place
        place = first._replace(end_line=last.end_line, end_column=last.end_column) if first <= last else first
        reader.found.append(Command(tuple(words), dict(reader.exported), place))
        reader.inner(words)
        return tuple(reader.found)

    def _reader(self, known: Environment) -> Reader:
        reader = Reader(self.document.file, self.text)
        for name, cells in known.items():
            reader.variables[name] = None if cells is None else (cells,)
            if cells is not None:
                where = cells.stands or (0,)
                place = reader.place(where[0], where[-1] + 1)
                text = None if UNKNOWN in cells.text else cells.text
                reader.exported[name] = Word(text, self.text[where[0] : where[-1] + 1], place, place, cells)
        return reader


def _lines(value: str, body: str, base: int) -> tuple[int, ...] | None:
    """Where the characters of a literal block stand: each line behind its indentation."""
    lines = body.split("\n")
    first = next((line for line in value.split("\n") if line.strip()), "")
    written = next((line for line in lines if line.strip()), "")
    indent = len(written) - len(first)
    if indent < 0:
        return None
    stands: list[int] = []
    at = base
    for line, text in zip(lines, value.split("\n"), strict=False):
        if line[indent:] != text:
            return None
        stands += range(at + min(indent, len(line)), at + len(line) + 1)
        at += len(line) + 1
    return tuple(stands[: len(value)]) if len(stands) >= len(value) else None


def _aligned(value: str, raw: str, base: int, start: int = 0) -> tuple[int, ...]:
    """Where the characters of a folded or escaped value stand: each at its next occurrence in what is written."""
    stands: list[int] = []
    at, last = start, max(0, len(raw) - 1)
    for char in value:
        if char.isspace():
            stands.append(base + min(at, last))
            if raw[at : at + 1].isspace():
                at += 1
            elif raw[at : at + 2] in ("\\n", "\\t"):
                at += 2
            continue
        found = raw.find(char, at, at + _REACH)
        at = found if found >= 0 else at
        stands.append(base + min(at, last))
        at += 1
    return tuple(stands)


def _substituted(cells: Cells, known: Environment) -> Cells:
    if "$(" not in cells.text:
        return cells

    def value(found: re.Match[str]) -> Cells | None:
        return known.get(found[1], Cells(found[0], cells.stands[found.start() : found.end()]))

    return _replaced(cells, _NAMED, value)


def _closed(cells: Cells) -> Cells:
    if "$" not in cells.text and "{{" not in cells.text:
        return cells
    return _replaced(cells, _OPEN, lambda found: None)


def _replaced(cells: Cells, pattern: re.Pattern[str], value: Callable[[re.Match[str]], Cells | None]) -> Cells:
    text = ""
    stands: list[int] = []
    at = 0
    for found in pattern.finditer(cells.text):
        put = value(found) or Cells(UNKNOWN, (cells.stands[found.start()],))
        text += cells.text[at : found.start()] + put.text
        stands += [*cells.stands[at : found.start()], *put.stands]
        at = found.end()
    return Cells(text + cells.text[at:], (*stands, *cells.stands[at:]))
