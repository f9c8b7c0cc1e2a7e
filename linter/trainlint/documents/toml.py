"""TOML: `tomllib` decides what is valid and what the values are, a second pass finds where they stand."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right

from trainlint.documents.failure import Unreadable
from trainlint.documents.tree import Entry, Mapping, Node, Place, Problem, Scalar, Sequence

DEPTH = 100
"""Deepest nesting read; training configs stay below ten."""

_DEEP = f"nested deeper than {DEPTH} levels"
_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_KEY = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|[A-Za-z0-9_-]+')
_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\]|\\.)*"|\'[^\']*\'', re.DOTALL)
_BARE = re.compile(r"[^,\]}#\n]+")
_ERROR_AT = re.compile(r"\(at line (\d+), column (\d+)\)")
_ERROR_END = re.compile(r" ?\(at end of document\)")


def parse(file: str, text: str) -> tuple[tuple[Node, ...], list[Problem]]:
    """Return the table of a TOML text; raise Unreadable where it breaks (a duplicate key included)."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said = str(error)
        found = _ERROR_AT.search(said)
        line, column = (int(found[1]), int(found[2])) if found else (text.count("\n") + 1, 1)
        message = _ERROR_END.sub(" at the end of the file", _ERROR_AT.sub("", said)).strip()
        message = (message[:1].lower() + message[1:]).replace("invalid", "bad")
        raise Unreadable("syntax", message, Place(file, line, column, line, column + 1)) from None
    except ValueError:  # Python refuses to convert numbers of thousands of digits
        raise Unreadable("syntax", "a number of too many digits", Place(file)) from None
    except RecursionError:
        raise Unreadable("too-deep", _DEEP, Place(file)) from None
    try:
        return (_Locator(file, text).document(values),), []
    except RecursionError:
        raise Unreadable("too-deep", _DEEP, Place(file)) from None


class _Table:
    """A table while it is being filled: key → (key scalar, node or table or array of tables)."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.entries: dict[str, tuple[Scalar, Node | _Table | list[_Table]]] = {}

    def node(self) -> Mapping:
        def one(value: Node | _Table | list[_Table]) -> Node:
            if isinstance(value, _Table):
                return value.node()
            if isinstance(value, list):
                return Sequence(tuple(table.node() for table in value), value[0].place)
            return value

        return Mapping(tuple(Entry(key, one(value)) for key, value in self.entries.values()), self.place)


class _Locator:
    """Walks a text that is known to be valid TOML."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self.at = 0
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def place(self, begin: int, end: int) -> Place:
        line, last = bisect_right(self.starts, begin), bisect_right(self.starts, max(begin, end - 1))
        return Place(self.file, line, begin - self.starts[line - 1] + 1, last, end - self.starts[last - 1] + 1)

    def skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def document(self, values: dict[str, object]) -> Mapping:
        root = table = _Table(self.place(0, len(self.text)))
        self.skip(_SPACE)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                many = self.text.startswith("[[", self.at)
                self.at += 2 if many else 1
                keys = self.keys()
                self.at = self.text.index("]]" if many else "]", self.at) + (2 if many else 1)
                table = self.open(root, keys, many)
            else:
                keys = self.keys()
                self.at = self.text.index("=", self.at) + 1
                self.skip(_BLANK)
                self.descend(table, keys[:-1]).entries[str(keys[-1].value)] = (keys[-1], self.value())
            self.skip(_SPACE)
        return _valued(root.node(), values)

    def keys(self) -> list[Scalar]:
        keys: list[Scalar] = []
        while True:
            self.skip(_BLANK)
            found = _KEY.match(self.text, self.at)
            assert found is not None
            raw = found.group()
            name = next(iter(tomllib.loads(f"{raw} = 0"))) if raw[0] in "\"'" else raw
            keys.append(Scalar(name, raw, self.place(found.start(), found.end()), raw[0] not in "\"'"))
            self.at = found.end()
            self.skip(_BLANK)
            if not self.text.startswith(".", self.at):
                return keys
            self.at += 1

    def descend(self, table: _Table, keys: list[Scalar]) -> _Table:
        for key in keys:
            _, below = table.entries.setdefault(str(key.value), (key, _Table(key.place)))
            table = below[-1] if isinstance(below, list) else below if isinstance(below, _Table) else _Table(key.place)
        return table

    def open(self, root: _Table, keys: list[Scalar], many: bool) -> _Table:
        above, key = self.descend(root, keys[:-1]), keys[-1]
        if not many:
            return self.descend(above, [key])
        _, tables = above.entries.setdefault(str(key.value), (key, []))
        assert isinstance(tables, list)
        tables.append(_Table(key.place))
        return tables[-1]

    def value(self) -> Node:
        """The node at this point; scalars get their value afterwards, from what tomllib read."""
        begin = self.at
        first = self.text[begin]
        if first == "[":
            items: list[Node] = []
            self.at += 1
            self.skip(_SPACE)
            while self.text[self.at] != "]":
                items.append(self.value())
                self.skip(_SPACE)
                if self.text[self.at] == ",":
                    self.at += 1
                    self.skip(_SPACE)
            self.at += 1
            return Sequence(tuple(items), self.place(begin, self.at))
        if first == "{":
            table = _Table(self.place(begin, begin + 1))
            self.at += 1
            self.skip(_SPACE)
            while self.text[self.at] != "}":
                keys = self.keys()
                self.at = self.text.index("=", self.at) + 1
                self.skip(_BLANK)
                self.descend(table, keys[:-1]).entries[str(keys[-1].value)] = (keys[-1], self.value())
                self.skip(_SPACE)
                if self.text[self.at] == ",":
                    self.at += 1
                    self.skip(_SPACE)
            self.at += 1
            table.place = self.place(begin, self.at)
            return table.node()
        found = (_STRING if first in "\"'" else _BARE).match(self.text, begin)
        assert found is not None
        raw = found.group().rstrip()
        self.at = begin + len(raw)
        return Scalar(None, raw, self.place(begin, self.at), first not in "\"'")


def _valued(node: Mapping, values: object) -> Mapping:
    """Give every scalar the value that tomllib read for it."""

    def fill(node: Node, value: object, depth: int) -> None:
        if depth > DEPTH:
            raise Unreadable("too-deep", _DEEP, node.place)
        match node, value:
            case Mapping(), dict():
                for name, entry in node.index.items():
                    fill(entry.value, value.get(name), depth + 1)
            case Sequence(), list():
                for item, below in zip(node.items, value, strict=True):
                    fill(item, below, depth + 1)
            case Scalar(), _:
                node.value = value if isinstance(value, str | int | float | bool) else str(value)

    fill(node, values, 0)
    return node
