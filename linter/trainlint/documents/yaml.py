"""YAML as libyaml composes it: positions, duplicate keys, anchors and merges, several documents, raw text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import yaml

from trainlint.documents.failure import Unreadable
from trainlint.documents.tree import Entry, Mapping, Node, Place, Problem, ProblemKind, Scalar, Sequence

DEPTH = 100
"""Deepest nesting read; training configs stay below ten."""
EXPANSION = 100_000
"""Most nodes a document may have once its aliases are written out."""

MERGE = "tag:yaml.org,2002:merge"
TEXT = "tag:yaml.org,2002:str"

_Leaf = yaml.ScalarNode
_tuple = tuple.__new__  # makes a Place or an Entry in half the time that its own constructor takes
_BREAKS = re.compile("[\x85\u2028\u2029]")


def parse(file: str, text: str) -> tuple[tuple[Node, ...], list[Problem]]:
    """Return the documents of a YAML text and what is odd about it; raise Unreadable where it breaks."""
    _refuse_deep(file, text)
    if not text.isascii():  # YAML 1.1 breaks lines at these too, editors don't: places count as editors do
        text = _BREAKS.sub(" ", text)
    problems: list[Problem] = []
    simple = "*" not in text and len(text) < EXPANSION  # a node is a character at least
    composed = _Composed(file, text, problems) if simple else _Aliased(file, text, problems)
    try:
        roots = tuple([composed.node(root) for root in yaml.compose_all(text, Loader=_Loader) if root is not None])
    except yaml.MarkedYAMLError as error:
        kind: ProblemKind = "too-deep" if "nesting depth" in (error.problem or "") else "syntax"
        mark = error.problem_mark or error.context_mark
        raise Unreadable(kind, _said(error, text), _at(file, mark)) from None
    except yaml.reader.ReaderError as error:
        at = _refused(text, error.position)
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        message = f"character U+{ord(text[at]):04X} is not allowed in YAML" if at < len(text) else str(error.reason)
        raise Unreadable("syntax", message, Place(file, line, column, line, column + 1)) from None
    except RecursionError:
        raise Unreadable("too-deep", f"nested deeper than {DEPTH} levels", Place(file)) from None
    return roots, problems


def _refuse_deep(file: str, text: str) -> None:
    """Keep absurd flow nesting from the C parser, which recurses on it."""
    if text.count("[") + text.count("{") <= DEPTH:
        return
    depth = 0
    for found in re.finditer(r"[\[{\]}]", text):
        depth = depth + 1 if found.group() in "[{" else max(0, depth - 1)
        if depth > 10 * DEPTH:
            line = text.count("\n", 0, found.start()) + 1
            column = found.start() - text.rfind("\n", 0, found.start())
            raise Unreadable(
                "too-deep", f"nested deeper than {DEPTH} levels", Place(file, line, column, line, column + 1)
            )


def _refused(text: str, position: int) -> int:
    """Where the character stands that a reader refuses; libyaml counts bytes, PyYAML's own reader characters."""
    found = re.search("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)
    return found.start() if found else position


def _said(error: yaml.MarkedYAMLError, text: str) -> str:
    problem, mark = error.problem or "not YAML", error.problem_mark
    if "nesting depth" in problem:
        return f"nested deeper than {DEPTH} levels"
    if "cannot start any token" in problem and mark is not None:
        line = text.split("\n")[mark.line] if mark.line <= text.count("\n") else ""
        sign = line[mark.column : mark.column + 1]
        return "a tab where YAML wants spaces" if sign == "\t" else f"`{sign}` can not stand here without quotes"
    return f"{problem} ({error.context})" if error.context else problem


def _at(file: str, mark: yaml.Mark | None) -> Place:
    if mark is None:
        return Place(file)
    return Place(file, mark.line + 1, mark.column + 1, mark.line + 1, mark.column + 2)


_PATTERNS: dict[str, list[tuple[str, re.Pattern[str]]]] = yaml.SafeLoader.yaml_implicit_resolvers
"""Types of plain scalars by their first character."""


@lru_cache(maxsize=4096)
def _tag(text: str) -> str:
    """The type of a plain scalar by its text (YAML 1.1), as PyYAML's resolver finds it."""
    for tag, pattern in _PATTERNS[text[:1]]:
        if pattern.match(text):
            return tag
    return TEXT


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """libyaml's parser, or PyYAML's own where that is not there, with types of plain scalars remembered."""

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: tuple[bool, bool]) -> str:
        """The tag of a node that carries none."""
        if kind is _Leaf:
            assert value is not None
            return _tag(value) if implicit[0] and value[:1] in _PATTERNS else TEXT
        return "tag:yaml.org,2002:seq" if kind is yaml.SequenceNode else "tag:yaml.org,2002:map"


class _Composed:
    """Turns libyaml's nodes into ours, in a text without aliases: every node is met once."""

    def __init__(self, file: str, text: str, problems: list[Problem]) -> None:
        self.file = file
        self.text = text
        self.problems = problems
        self.depth = 0

    def node(self, node: yaml.Node) -> Node:
        """One node with all below it."""
        if node.__class__ is _Leaf:
            start, end, value = node.start_mark, node.end_mark, node.value
            place = _tuple(Place, (self.file, start.line + 1, start.column + 1, end.line + 1, end.column + 1))
            plain = not node.style  # libyaml says "", PyYAML None
            raw = value if plain else self.text[start.index : end.index]
            construct = _CONSTRUCT.get(node.tag)
            return Scalar(construct(value) if construct else value, raw, place, plain)
        self.depth += 1
        if self.depth > DEPTH:
            raise Unreadable("too-deep", f"nested deeper than {DEPTH} levels", self.place(node))
        ours: Node
        if node.__class__ is yaml.MappingNode:
            entries, last = self.entries(node)
            ours = Mapping(tuple(entries), self.place(node, last))
        else:
            items = tuple([self.node(item) for item in node.value])
            ours = Sequence(items, self.place(node, items[-1].place[3:] if items else None))
        self.depth -= 1
        return ours

    def place(self, node: yaml.Node, last: tuple[int, int] | None = None) -> Place:
        """Where a node stands; a block collection ends with its `last` item: libyaml reaches to the next token."""
        start, end = node.start_mark, node.end_mark
        line, column = start.line + 1, start.column + 1
        if last is None or node.flow_style:  # type: ignore[attr-defined]
            return Place(self.file, line, column, end.line + 1, end.column + 1)
        return Place(self.file, line, column, *max(last, (line, column)))

    def entries(self, node: yaml.MappingNode) -> tuple[list[Entry], tuple[int, int] | None]:
        """The entries of a mapping, with what `<<` brings in, and where the last one ends."""
        entries: list[Entry] = []
        seen: dict[str, Place] = {}
        key: yaml.Node | None = None
        ours: Node | None = None
        read = self.node
        for key, value in node.value:
            if key.tag == MERGE:
                ours = self.merged(value, entries)
                continue
            name_node = read(key)
            if name_node.__class__ is Scalar:
                name = name_node.value if name_node.value.__class__ is str else name_node.raw
            else:
                name = self.text[key.start_mark.index : key.end_mark.index]
                name_node = Scalar(None, name, name_node.place)
            ours = read(value)
            entries.append(_tuple(Entry, (name_node, ours, False)))
            at = name_node.place
            first = seen.setdefault(name, at)
            if first is not at:
                message = f"`{name}` stands twice, the first time on line {first.line}"
                self.problems.append(Problem("duplicate-key", message, at, first))
        if key is None:
            return entries, None
        end = (key.end_mark.line + 1, key.end_mark.column + 1)
        return entries, max(end, ours.place[3:]) if ours is not None else end  # that of an alias lies before

    def merged(self, value: yaml.Node, entries: list[Entry]) -> Node | None:
        """Add what `<<` brings in; returns the mapping, or None for a list of them."""
        listed = value.__class__ is yaml.SequenceNode
        ours: Node | None = None
        for source in reversed(value.value if listed else [value]):
            ours = self.node(source)
            if isinstance(ours, Mapping):
                entries.extend(Entry(entry.key, entry.value, True) for entry in ours.entries)
        return None if listed else ours


class _Aliased(_Composed):
    """The same for a text that may hold aliases, or is long: each anchor once, and no more nodes than EXPANSION."""

    def __init__(self, file: str, text: str, problems: list[Problem]) -> None:
        super().__init__(file, text, problems)
        self.known: dict[int, tuple[yaml.Node, Node, int]] = {}
        self.open: set[int] = set()
        self.size = 0

    def node(self, node: yaml.Node) -> Node:
        """One node, or what its anchor stands for."""
        before = self.known.get(id(node))
        if before is not None:
            self.grow(before[2], before[1].place)
            return before[1]
        if id(node) in self.open:
            raise Unreadable("alias-bomb", "an alias that contains itself", self.place(node))
        self.open.add(id(node))
        size = self.size
        self.grow(1, self.place(node))
        ours = super().node(node)
        self.open.discard(id(node))
        self.known[id(node)] = (node, ours, self.size - size)
        return ours

    def grow(self, by: int, place: Place) -> None:
        """Count nodes as if aliases were written out."""
        self.size += by
        if self.size > EXPANSION:
            raise Unreadable("alias-bomb", f"its aliases expand to more than {EXPANSION:,} nodes", place)


def _bool(text: str) -> object:
    return text.lower() in ("yes", "true", "on")


def _int(text: str) -> object:
    digits = text.replace("_", "")
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    try:
        if not digits:
            return text
        if digits == "0":
            return 0
        if digits.startswith("0b"):
            return sign * int(digits[2:], 2)
        if digits.startswith("0x"):
            return sign * int(digits[2:], 16)
        if ":" in digits:
            total = 0
            for part in digits.split(":"):
                total = total * 60 + int(part)
            return sign * total
        return sign * int(digits, 8 if digits[0] == "0" else 10)
    except ValueError:
        return text


def _float(text: str) -> object:
    digits = text.replace("_", "").lower()
    try:
        if digits.endswith(".inf"):
            return float("-inf" if digits.startswith("-") else "inf")
        if digits == ".nan":
            return float("nan")
        if ":" in digits:
            total = 0.0
            for part in digits.lstrip("+-").split(":"):
                total = total * 60 + float(part)
            return -total if digits.startswith("-") else total
        return float(digits)
    except ValueError:
        return text


_CONSTRUCT: dict[str, Callable[[str], object]] = {
    "tag:yaml.org,2002:bool": _bool,
    "tag:yaml.org,2002:int": _int,
    "tag:yaml.org,2002:float": _float,
    "tag:yaml.org,2002:null": lambda text: None,
}
