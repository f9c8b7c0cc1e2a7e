"""YAML as libyaml composes it: positions, duplicate keys, anchors and merges, several documents, raw text."""

from __future__ import annotations

import re
from collections.abc import Callable

import yaml

from trainlint.documents.failure import Unreadable
from trainlint.documents.tree import Entry, Mapping, Node, Place, Problem, ProblemKind, Scalar, Sequence

DEPTH = 100
"""Deepest nesting read; training configs stay below ten."""
EXPANSION = 100_000
"""Most nodes a document may have once its aliases are written out."""

_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BREAKS = re.compile("[\x85\u2028\u2029]")


def parse(file: str, text: str) -> tuple[tuple[Node, ...], list[Problem]]:
    """Return the documents of a YAML text and what is odd about it; raise Unreadable where it breaks."""
    _refuse_deep(file, text)
    if not text.isascii():  # YAML 1.1 breaks lines at these too, editors don't: places count as editors do
        text = _BREAKS.sub(" ", text)
    problems: list[Problem] = []
    composed = _Composed(file, text, problems)
    try:
        roots = tuple(composed.node(root) for root in yaml.compose_all(text, Loader=_LOADER) if root is not None)
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


class _Composed:
    """Turns libyaml's nodes into ours, each anchor once."""

    def __init__(self, file: str, text: str, problems: list[Problem]) -> None:
        self.file = file
        self.text = text
        self.problems = problems
        self.known: dict[int, tuple[yaml.Node, Node, int]] = {}
        self.open: set[int] = set()
        self.size = 0
        self.depth = 0

    def node(self, node: yaml.Node) -> Node:
        before = self.known.get(id(node))
        if before is not None:
            self._grow(before[2], before[1].place)
            return before[1]
        start, end = node.start_mark, node.end_mark
        place = Place(self.file, start.line + 1, start.column + 1, end.line + 1, end.column + 1)
        self._grow(1, place)
        if isinstance(node, yaml.ScalarNode):
            plain = not node.style  # libyaml says "", PyYAML None
            scalar = Scalar(_value(node), node.value if plain else self.text[start.index : end.index], place, plain)
            self.known[id(node)] = (node, scalar, 1)
            return scalar
        if id(node) in self.open:
            raise Unreadable("alias-bomb", "an alias that contains itself", place)
        self.open.add(id(node))
        self.depth += 1
        if self.depth > DEPTH:
            raise Unreadable("too-deep", f"nested deeper than {DEPTH} levels", place)
        size = self.size
        ours: Node
        if isinstance(node, yaml.MappingNode):
            entries = self._entries(node)
            ours = Mapping(entries, self._ended(place, node, *node.value[-1:]))
        else:
            assert isinstance(node, yaml.SequenceNode)
            items = tuple([self.node(item) for item in node.value])
            ours = Sequence(items, self._ended(place, node, *((item, item) for item in node.value[-1:])))
        self.depth -= 1
        self.open.discard(id(node))
        self.known[id(node)] = (node, ours, self.size - size + 1)
        return ours

    def _ended(self, place: Place, node: yaml.CollectionNode, *last: tuple[yaml.Node, yaml.Node]) -> Place:
        """The place of a block collection up to the end of its last item; libyaml lets it reach to the next token."""
        if node.flow_style or not last:
            return place
        key, value = last[0]
        end = (key.end_mark.line + 1, key.end_mark.column + 1) if key is not value else place[1:3]
        known = self.known.get(id(value))
        if known is not None:  # that of an alias lies before
            end = max(end, known[1].place[3:5])
        return Place(place.file, place.line, place.column, *max(end, place[1:3]))

    def _entries(self, node: yaml.MappingNode) -> tuple[Entry, ...]:
        entries: list[Entry] = []
        seen: dict[str, Place] = {}
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                entries.extend(self._merged(value))
                continue
            ours = self.node(key)
            if not isinstance(ours, Scalar):
                ours = Scalar(None, self.text[key.start_mark.index : key.end_mark.index], ours.place)
            entry = Entry(ours, self.node(value))
            first = seen.setdefault(entry.name, ours.place)
            if first is not ours.place:
                message = f"`{entry.name}` stands twice, the first time on line {first.line}"
                self.problems.append(Problem("duplicate-key", message, ours.place, first))
            entries.append(entry)
        return tuple(entries)

    def _merged(self, value: yaml.Node) -> list[Entry]:
        sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
        merged: list[Entry] = []
        for source in reversed(sources):
            ours = self.node(source)
            if isinstance(ours, Mapping):
                merged.extend(Entry(entry.key, entry.value, True) for entry in ours.entries)
        return merged

    def _grow(self, by: int, place: Place) -> None:
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


def _value(node: yaml.ScalarNode) -> object:
    """What PyYAML's safe loader makes of a scalar (YAML 1.1); dates stay text."""
    construct = _CONSTRUCT.get(node.tag)
    return construct(node.value) if construct else node.value
