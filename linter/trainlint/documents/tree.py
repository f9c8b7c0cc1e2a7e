"""What a config file says, and where: a tree in which every node knows its place and its raw text.

Nothing here knows of training. Lines and columns count from 1, columns in characters, ends are exclusive.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from trainlint.documents.notebook import Notebook

Syntax = Literal["yaml", "json", "toml", "python", "notebook", "shell", "text"]
ProblemKind = Literal[
    "unreadable",
    "too-large",
    "binary",
    "encoding",
    "byte-order-mark",
    "syntax",
    "too-deep",
    "alias-bomb",
    "duplicate-key",
    "json-comment",
    "trailing-comma",
    "tab",
]


class Place(NamedTuple):
    """A stretch of one file; `line` and `column` count from 1 (characters), the end is exclusive."""

    file: str
    line: int = 1
    column: int = 1
    end_line: int = 1
    end_column: int = 1


class Scalar:
    """A leaf. `value` is what the file's usual loader makes of it, `raw` the text as written.

    `plain` says that the text stands without quotes, so that another loader may read it as another type.
    """

    __slots__ = ("place", "plain", "raw", "value")

    def __init__(self, value: object, raw: str, place: Place, plain: bool = True) -> None:
        self.value = value
        self.raw = raw
        self.place = place
        self.plain = plain

    def __repr__(self) -> str:
        return f"Scalar({self.value!r}, line {self.place.line})"


class Entry(NamedTuple):
    """One `key: value` of a mapping; `merged` when it came in through a YAML merge key (`<<`)."""

    key: Scalar
    value: Node
    merged: bool = False

    @property
    def name(self) -> str:
        """The key as text, as the user wrote it."""
        return self.key.value if isinstance(self.key.value, str) else self.key.raw


class Mapping:
    """Keys and values in the order of the file. Of a repeated key the last entry counts."""

    __slots__ = ("_index", "entries", "place")

    def __init__(self, entries: tuple[Entry, ...], place: Place) -> None:
        self.entries = entries
        self.place = place
        self._index: dict[str, Entry] | None = None

    @property
    def index(self) -> dict[str, Entry]:
        """The entries by name: what is written here wins over what was merged in, later over earlier."""
        if self._index is None:
            self._index = {entry.name: entry for entry in self.entries if entry.merged}
            self._index.update({entry.name: entry for entry in self.entries if not entry.merged})
        return self._index

    def entry(self, name: str) -> Entry | None:
        """The entry of that key, or None."""
        return self.index.get(name)

    def get(self, name: str) -> Node | None:
        """The value of that key, or None."""
        entry = self.index.get(name)
        return entry.value if entry else None

    def find(self, path: str) -> Node | None:
        """The node at a dotted path of keys, or None."""
        node: Node | None = self
        for name in path.split("."):
            if not isinstance(node, Mapping):
                return None
            node = node.get(name)
        return node

    def names(self) -> frozenset[str]:
        """All keys of this mapping."""
        return frozenset(self.index)

    def __contains__(self, name: object) -> bool:
        return name in self.index

    def __repr__(self) -> str:
        return f"Mapping({', '.join(self.index)})"


class Sequence:
    """A list of nodes."""

    __slots__ = ("items", "place")

    def __init__(self, items: tuple[Node, ...], place: Place) -> None:
        self.items = items
        self.place = place

    def __repr__(self) -> str:
        return f"Sequence({len(self.items)} items)"


Node = Scalar | Mapping | Sequence


class Problem(NamedTuple):
    """Something about the text itself: `related` is where it stands for the first time, if it stands twice."""

    kind: ProblemKind
    message: str
    place: Place
    related: Place | None = None


class Comment(NamedTuple):
    """A comment that speaks to the linter: `# trainlint: …`, its text behind the colon."""

    text: str
    place: Place
    alone: bool


@dataclass(frozen=True, slots=True)
class Document:
    """One file as read: `roots` are its YAML documents (one for JSON and TOML), `module` a script's syntax tree.

    Of a notebook `text` is the code of its cells, a script; `notebook` leads from there to the places in the file.
    """

    file: str
    syntax: Syntax
    text: str = ""
    roots: tuple[Node, ...] = ()
    module: ast.Module | None = None
    problems: tuple[Problem, ...] = ()
    comments: tuple[Comment, ...] = ()
    notebook: Notebook | None = None
    lines: list[str] = field(default_factory=list, repr=False)

    def line(self, number: int) -> str:
        """The text of a line, counted from 1, without its end; empty outside the file."""
        if not self.lines:
            self.lines.extend(self.text.split("\n"))
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""


def plain(node: Node | None) -> object:
    """The tree as ordinary dicts, lists and scalars."""
    match node:
        case Mapping():
            return {name: plain(entry.value) for name, entry in node.index.items()}
        case Sequence():
            return [plain(item) for item in node.items]
        case Scalar():
            return node.value
        case None:
            return None


def scalars(node: Node | None, path: str = "") -> Iterator[tuple[str, Entry | None, Scalar]]:
    """Every leaf with its dotted path and the mapping entry it is the value of (None inside a list)."""
    match node:
        case Mapping():
            for name, entry in node.index.items():
                below = f"{path}.{name}" if path else name
                if isinstance(entry.value, Scalar):
                    yield below, entry, entry.value
                else:
                    yield from scalars(entry.value, below)
        case Sequence():
            for at, item in enumerate(node.items):
                below = f"{path}[{at}]"
                if isinstance(item, Scalar):
                    yield below, None, item
                else:
                    yield from scalars(item, below)
        case Scalar():
            yield path, None, node
        case None:
            return


def nodes(root: Node) -> Iterator[Node]:
    """Every node of a tree, keys included, each once however many aliases lead to it."""
    known: set[int] = set()
    left = [root]
    while left:
        node = left.pop()
        if id(node) in known:
            continue
        known.add(id(node))
        yield node
        match node:
            case Mapping():
                for entry in node.entries:
                    left += (entry.key, entry.value)
            case Sequence():
                left += node.items
