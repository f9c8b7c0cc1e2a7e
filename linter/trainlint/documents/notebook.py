"""Jupyter notebooks as one Python text, line for line, with the way back to the places in the notebook's JSON.

The code cells stand one below the other. What is no Python is taken out without moving a line: magics (`%cd`, `!pip
install`) become `pass`, cells in another language and cells that do not parse become empty. Shell lines are kept apart,
at their places, for those who ask what was installed.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trainlint.documents.failure import Unreadable
from trainlint.documents.tree import Place

_STRING = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"')
_SPACE = re.compile(r"[ \t\r\n]*")
_NESTED = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"|[\[\]{}]')
_BARE = re.compile(r"[^\s,\]}\"\[{]+")
_SIGN = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_MAGIC = re.compile(r"(?P<indent>\s*)(?:%{1,2}\w|!|\?\w)")
_ASSIGNED = re.compile(r"(?P<target>\s*[\w.,\s]+?=\s*)(?P<magic>[!%]\w.*)$")
_HELP = re.compile(r"(?P<indent>\s*)[\w.]+\?{1,2}\s*$")
_SHELL = re.compile(r"\s*(?:!|%(?=(?:pip|conda|uv|sx)\b)|%%?(?:bash|sh|shell)\s)")
PYTHON_CELLS = frozenset(("time", "timeit", "capture", "prun", "debug"))
"""Cell magics that run the cell as Python."""
SHELL_CELLS = frozenset(("bash", "sh", "shell", "script"))


class Line(NamedTuple):
    """A line of the code: its line in the file, the columns there of its characters and of its end, its cell."""

    line: int
    columns: Sequence[int]
    cell: int


@dataclass(frozen=True, slots=True)
class Notebook:
    """A notebook: `text` as the file holds it, the `code` made of its cells, and its shell lines at the same places."""

    text: str
    code: str
    shell: str
    lines: tuple[Line, ...]

    def place(self, place: Place) -> Place:
        """The place in the file of a place in the code."""
        line, column = self.position(place.line, place.column)
        end_line, end_column = self.position(place.end_line, place.end_column)
        return Place(place.file, line, column, end_line, end_column)

    def position(self, line: int, column: int) -> tuple[int, int]:
        """Line and column in the file of a line and a column in the code."""
        if not self.lines:
            return 1, 1
        at = self.lines[min(line, len(self.lines)) - 1]
        if line > len(self.lines):
            return at.line, at.columns[-1]
        return at.line, at.columns[min(column, len(at.columns)) - 1]

    def cell(self, place: Place) -> int:
        """The number of the code cell that a place in the code is in, counted from 1 over all cells."""
        return self.lines[min(place.line, len(self.lines)) - 1].cell if self.lines else 0


def parse(file: str, text: str) -> Notebook:
    """Read a notebook; raise Unreadable where the JSON breaks. One without code in Python has no lines."""
    reader = _Reader(file, text)
    cells, python = reader.notebook()
    code: list[str] = []
    shell: list[str] = []
    lines: list[Line] = []
    for number, kind, sources in cells:
        if kind != "code" or not python:
            continue
        cell = [line for source in sources for line in reader.lines(source)]
        joined = _joined(cell)
        plain, commands = _python([sign for sign, _, _ in joined])
        code += plain
        shell += commands
        lines += [Line(line, columns, number) for _, line, columns in joined]
    return Notebook(text, "\n".join(code), "\n".join(shell), tuple(lines))


Piece = tuple[str, int, Sequence[int]]
"""A stretch of a line of code: its text, its line in the file, the columns there of its characters and of its end."""


def _joined(pieces: list[tuple[Piece, bool]]) -> list[Piece]:
    """Pieces to lines: what follows one that does not end its line belongs to that line."""
    lines: list[Piece] = []
    goes_on = False
    for piece, ends in pieces:
        if goes_on:
            text, line, columns = lines.pop()
            if text and piece[1] == line:
                piece = (text + piece[0], line, (*columns[:-1], *piece[2]))
            elif text:  # the rest stands on another line of the file: it is taken to stand at the end of this one
                piece = (text + piece[0], line, (*columns, *[columns[-1]] * len(piece[0])))
        lines.append(piece)
        goes_on = not ends
    return lines


def _python(lines: list[str]) -> tuple[list[str], list[str]]:
    """The lines of a cell as Python, and its shell lines; both as many as there were."""
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("%%"):
        magic = first[2:].split()[0] if first[2:].split() else ""
        if magic not in PYTHON_CELLS:
            within = [line if magic in SHELL_CELLS and line is not first else "" for line in lines]
            return [""] * len(lines), within
    if _parses(lines):
        return lines, [""] * len(lines)
    plain, shell = [], []
    continues = False
    depth = 0  # of brackets: inside of them a line begins with `%` where a remainder is taken
    for line in lines:
        found = _SHELL.match(line) if depth <= 0 else None
        shell.append(" " * found.end() + line[found.end() :] if found else line if continues else "")
        if continues:
            plain.append("")
        elif depth <= 0 and (magic_line := _MAGIC.match(line) or _HELP.match(line)):
            plain.append(magic_line["indent"] + "pass")
        elif assigned := _ASSIGNED.match(line):
            plain.append(assigned["target"] + "None")
        else:
            plain.append(line)
            depth += sum(line.count(sign) for sign in "([{") - sum(line.count(sign) for sign in ")]}")
        continues = line.endswith("\\") and (continues or found is not None)
    return (plain if _parses(plain) else [""] * len(lines)), shell


def _parses(lines: list[str]) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


class _Reader:
    """Walks the JSON of a notebook and stops only at what is needed: cells, their kinds and sources, the language."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self.at = 0
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def notebook(self) -> tuple[list[tuple[int, str, list[tuple[int, int]]]], bool]:
        """The cells (number, kind, where the texts of their source stand), and whether the language is Python."""
        cells: list[tuple[int, str, list[tuple[int, int]]]] = []
        python = True
        for key in self.keys():
            if key == "cells":
                cells = [self.cell(number) for number in self.items()]
            elif key == "metadata":
                begin, end = self.skip()
                found = re.search(r'"language(?:_info)?"\s*:\s*(?:\{[^{}]*"name"\s*:\s*)?"(\w+)"', self.text[begin:end])
                python = found is None or found[1].lower() in ("python", "ipython")
            else:
                self.skip()
        if self.peek():
            raise self.fail("text behind the end of the notebook")
        return cells, python

    def cell(self, number: int) -> tuple[int, str, list[tuple[int, int]]]:
        kind, sources = "", []
        for key in self.keys():
            if key == "cell_type":
                begin, end = self.string()
                kind = self.text[begin + 1 : end - 1]
            elif key == "source" and self.peek() == "[":
                sources = [self.string() for _ in self.items()]
            elif key == "source":
                sources = [self.string()]
            else:
                self.skip()
        return number, kind, sources

    def lines(self, span: tuple[int, int]) -> Iterator[tuple[Piece, bool]]:
        """The lines in a JSON string, and whether each is ended there."""
        begin, end = span
        line = bisect_right(self.starts, begin)
        column = begin - self.starts[line - 1] + 2
        raw = self.text[begin + 1 : end - 1]
        if "\\" not in raw.replace("\\n", ""):  # nothing but ends of lines: columns are counted
            *ended, last = raw.split("\\n")
            for text in ended:
                yield (text, line, range(column, column + len(text) + 1)), True
                column += len(text) + 2
            yield (last, line, range(column, column + len(last) + 1)), False
            return
        signs: list[str] = []
        columns: list[int] = []
        for found in _SIGN.finditer(self.text, begin + 1, end - 1):
            sign = _decoded(found[0])
            if sign == "\n":
                yield ("".join(signs), line, (*columns, column)), True
                signs, columns = [], []
            elif sign != "\r":
                signs.append(sign)
                columns.append(column)
            column += len(found[0])
        yield ("".join(signs), line, (*columns, column)), False

    def keys(self) -> Iterator[str]:
        """The keys of an object, with the reader before each value."""
        for _ in self.items("{", "}"):
            begin, end = self.string()
            if self.peek() != ":":
                raise self.fail("no `:` behind a key")
            self.at += 1
            yield json.loads(self.text[begin:end], strict=False)

    def items(self, opens: str = "[", closes: str = "]") -> Iterator[int]:
        """The items of an array, counted from 1, with the reader before each."""
        if self.peek() != opens:
            raise self.fail(f"no `{opens}` where a notebook has one")
        self.at += 1
        number = 0
        while self.peek() != closes:
            number += 1
            yield number
            if self.peek() == ",":
                self.at += 1
            elif self.peek() != closes:
                raise self.fail(f"no `,` or `{closes}`")
        self.at += 1

    def string(self) -> tuple[int, int]:
        self.peek()
        found = _STRING.match(self.text, self.at)
        if found is None:
            raise self.fail("no text where a notebook has one")
        self.at = found.end()
        return found.span()

    def skip(self) -> tuple[int, int]:
        """Step over a value."""
        first = self.peek()
        begin = self.at
        if first == '"':
            return self.string()
        if first not in ("[", "{"):
            found = _BARE.match(self.text, self.at)
            if found is None:
                raise self.fail("no value")
            self.at = found.end()
            return found.span()
        depth = 0
        for found in _NESTED.finditer(self.text, self.at):
            depth += 1 if found[0] in "[{" else -1 if found[0] in "]}" else 0
            if depth == 0:
                self.at = found.end()
                return begin, self.at
        raise self.fail("a value that does not end")

    def peek(self) -> str:
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.text[self.at : self.at + 1]

    def fail(self, message: str) -> Unreadable:
        line = bisect_right(self.starts, self.at)
        column = self.at - self.starts[line - 1] + 1
        return Unreadable("syntax", message, Place(self.file, line, column, line, column + 1))


def _decoded(raw: str) -> str:
    if raw[0] != "\\":
        return raw
    if raw[1] == "u":
        return str(json.loads(f'"{raw}"'))
    return _ESCAPES.get(raw[1], raw[1])
