"""Conditions of declarative rules: a path of the run or a key of the file, compared. Unknown meets no condition."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from trainlint import fields
from trainlint.documents import Entry, Mapping, Node, Place, Scalar, plain
from trainlint.formats import Fragment
from trainlint.rule import RuleError, Target
from trainlint.run import PathInfo, Value, path_info
from trainlint.units import UnitError, parse

_UNIT = re.compile(r"\s*[\d._]+(?:[eE][+-]?\d+)?\s*[A-Za-z]+\s*")


@dataclass(slots=True)
class View:
    """What conditions are asked of: a run with its fragments, or one file."""

    values: Callable[[str], Value[object] | None]
    fragments: tuple[Fragment, ...]

    def key(self, name: str, formats: tuple[str, ...]) -> tuple[Fragment, Entry] | None:
        """A key as written, in the root or in the first fragment of one of the formats."""
        for fragment in self.fragments:
            if not formats or fragment.format in formats:
                entry = fragment.entry(name)
                if entry is not None:
                    return fragment, entry
        return None


@dataclass(frozen=True, slots=True)
class Operand:
    """A path of the run, or a key of the file."""

    name: str
    is_key: bool
    info: PathInfo | None
    formats: tuple[str, ...]

    def known(self, view: View) -> bool:
        """Whether there is anything there."""
        return self.spot(view) is not None

    def spot(self, view: View) -> Value[object] | Entry | None:
        """What stands there, with its place."""
        if not self.is_key:
            return view.values(self.name)
        found = view.key(self.name, self.formats)
        return found[1] if found else None

    def value(self, view: View) -> object:
        """The plain value there, None where nothing is known."""
        match self.spot(view):
            case Value(value=value):
                return value
            case Entry(value=Scalar(value=value)):
                return value
            case Entry(value=node):
                return plain(node)
            case _:
                return None


@dataclass(frozen=True, slots=True)
class Choice(Operand):
    """Several paths or keys, of which the first that is written counts, else the first that is known."""

    among: tuple[Operand, ...] = ()

    def spot(self, view: View) -> Value[object] | Entry | None:
        """What stands at the one that counts."""
        known = [spot for operand in self.among if (spot := operand.spot(view)) is not None]
        placed = (spot for spot in known if isinstance(spot, Entry) or spot.place is not None)
        return next(placed, known[0] if known else None)


Test = Callable[[View], bool]
Comparison = Callable[[object, object], bool]


def _number(value: object) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _order(compare: Callable[[float, float], bool]) -> Comparison:
    def ordered(left: object, right: object) -> bool:
        first, second = _number(left), _number(right)
        return first is not None and second is not None and compare(first, second)

    return ordered


def _same(left: object, right: object) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return left == right


def _version(left: object, right: object) -> bool:
    """Whether every version that `left` (a pin or a range) allows is in the range `right`."""
    from trainlint.facts.versions import contains, parse

    allowed, wanted = parse(str(left)), parse(str(right))
    if allowed is None or wanted is None:
        return False
    if allowed.pinned is not None:
        return contains(str(right), str(allowed.pinned))
    lowest, highest = allowed.lowest, allowed.highest
    for operator, bound in wanted.clauses:
        if operator in (">=", ">") and (lowest is None or lowest < bound):
            return False
        if operator in ("<", "<=") and (highest is None or highest > bound):
            return False
        if operator in ("==", "!="):
            return False
    return True


OPERATORS: dict[str, Comparison] = {
    "is": _same,
    "is-not": lambda left, right: not _same(left, right),
    "in": lambda left, right: isinstance(right, list) and any(_same(left, item) for item in right),
    "not-in": lambda left, right: isinstance(right, list) and not any(_same(left, item) for item in right),
    "above": _order(lambda left, right: left > right),
    "at-least": _order(lambda left, right: left >= right),
    "below": _order(lambda left, right: left < right),
    "at-most": _order(lambda left, right: left <= right),
    "matches": lambda left, right: isinstance(left, str) and re.fullmatch(str(right), left) is not None,
    "version": _version,
}
STATES = ("known", "written")


class Compiler:
    """Turns a rule file's tree into tests, refusing what a run does not have."""

    def __init__(self, formats: tuple[str, ...], on: Target) -> None:
        self.formats = formats
        self.on = on
        self.operands: dict[str, Operand] = {}
        self.needs: list[str] = []

    def condition(self, node: Node, positive: bool = True) -> Test:
        """The test that a condition stands for."""
        mapping = fields.mapping(node, "a condition")
        names = mapping.names()
        for word, gather in (("all", all), ("any", any)):
            if word in names:
                fields.only(mapping, (word,))
                tests = [self.condition(item, positive and word == "all") for item in fields.items(mapping, word)]
                return partial(_gathered, gather, tests)
        if "not" in names:
            fields.only(mapping, ("not",))
            inner = self.condition(fields.get(mapping, "not"), False)
            return lambda view: not inner(view)
        return self.comparison(mapping, positive)

    def operand(self, mapping: Mapping) -> Operand:
        """The path or key that a mapping names."""
        for word in ("path", "key"):
            node = mapping.get(word)
            if node is not None:
                return self.named(fields.text(node, word), word == "key", node.place)
        raise RuleError("a condition needs `path` or `key`", mapping.place)

    def named(self, name: str, is_key: bool, place: Place) -> Operand:
        """A path of the run, checked against the vocabulary, or a key of the file."""
        info = None if is_key else path_info(name)
        if not is_key and info is None:
            raise RuleError(f"a run has no path `{name}`{_suggestion(name)}", place)
        operand = Operand(name, is_key, info, self.formats if is_key else ())
        self.operands.setdefault(name, operand)
        return operand

    def comparison(self, mapping: Mapping, positive: bool) -> Test:
        """A path or key with one or more operators, all of which must hold."""
        operand = self.operand(mapping)
        tests: list[Test] = []
        for entry in mapping.entries:
            if entry.name in ("path", "key"):
                continue
            if entry.name in STATES:
                tests.append(_state(operand, entry.name, plain(entry.value) is True))
                if positive and entry.name == "known" and plain(entry.value) is True:
                    self._need(operand)
                continue
            compare = OPERATORS.get(entry.name)
            if compare is None:
                raise RuleError(
                    f"no operator `{entry.name}`: there are {', '.join((*OPERATORS, *STATES))}", entry.key.place
                )
            if positive:
                self._need(operand)
            tests.append(self.compared(operand, compare, entry))
        if not tests:
            raise RuleError(f"nothing is asked of `{operand.name}`", mapping.place)
        return partial(_gathered, all, tests)

    def compared(self, operand: Operand, compare: Comparison, entry: Entry) -> Test:
        """A comparison with a literal, a path or a key."""
        if isinstance(entry.value, Mapping):
            other = self.operand(entry.value)
            fields.only(entry.value, ("path", "key"))
            if operand.info and other.info and operand.info.unit != other.info.unit:
                units = operand.info.unit or "nothing", other.info.unit or "nothing"
                message = f"`{operand.name}` counts {units[0]}, `{other.name}` {units[1]}"
                raise RuleError(message, entry.value.place)
            return lambda view: (
                operand.known(view) and other.known(view) and compare(operand.value(view), other.value(view))
            )
        literal = self.literal(operand, entry)
        return lambda view: operand.known(view) and compare(operand.value(view), literal(view))

    def literal(self, operand: Operand, entry: Entry) -> Callable[[object], object]:
        """A literal; one with a unit is converted when it is first compared, for that needs pint."""
        value = plain(entry.value)
        unit = operand.info.unit if operand.info else ""
        choices = operand.info.choices if operand.info else ()
        for item in value if isinstance(value, list) else [value]:
            if choices and entry.name in ("is", "is-not", "in", "not-in") and item not in choices:
                raise RuleError(f"`{operand.name}` is one of {', '.join(choices)}, not `{item}`", entry.value.place)
        if not isinstance(value, str) or not operand.info or operand.info.kind not in ("count", "number"):
            return lambda view: value
        if not _UNIT.fullmatch(value):
            raise RuleError(f"`{operand.name}` is a number of {unit or 'nothing'}, not `{value}`", entry.value.place)
        place = entry.value.place

        def converted(view: object) -> float:
            try:
                return parse(value, unit)
            except UnitError as error:
                raise RuleError(str(error), place) from None

        return converted

    def _need(self, operand: Operand) -> None:
        if not operand.is_key and self.on == "run" and operand.name not in self.needs:
            self.needs.append(operand.name)


def _gathered(gather: Callable[[Iterable[bool]], bool], tests: list[Test], view: View) -> bool:
    return gather(test(view) for test in tests)


def _state(operand: Operand, word: str, wanted: bool) -> Test:
    def holds(view: View) -> bool:
        spot = operand.spot(view)
        there = spot is not None and (word == "known" or isinstance(spot, Entry) or spot.written)
        return there is wanted

    return holds


def _suggestion(name: str) -> str:
    from difflib import get_close_matches

    from trainlint.run import paths

    close = get_close_matches(name, paths(), 1)
    return f", did you mean `{close[0]}`" if close else ""
