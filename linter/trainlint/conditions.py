"""Conditions of declarative rules: a path of the run or a key of the file, compared. Unknown meets no condition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from trainlint import comparisons, fields
from trainlint.documents import Entry, Mapping, Node, Place, Scalar, plain
from trainlint.formats import Fragment
from trainlint.rule import RuleError, Target
from trainlint.run import PathInfo, Value, path_info


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
                return list(value) if isinstance(value, tuple) else value
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


Test = Callable[[View], bool | None]
"""Whether something holds; None where a path is unknown. A key that is not written is known not to be."""

STATES = ("known", "written")


class Compiler:
    """Turns a rule file's tree into tests, refusing what a run does not have."""

    def __init__(self, formats: tuple[str, ...], on: Target) -> None:
        self.formats = formats
        self.on = on
        self.operands: dict[str, Operand] = {}
        self.needs: list[str] = []

    def condition(self, node: Node, positive: bool = True, negated: bool = False) -> Test:
        """The test of a condition. `positive`: nothing holds where one of its paths is unknown."""
        mapping = fields.mapping(node, "a condition")
        names = mapping.names()
        for word in ("all", "any"):
            if word in names:
                fields.only(mapping, (word,))
                every = positive and word == ("any" if negated else "all")
                tests = [self.condition(item, every, negated) for item in fields.items(mapping, word)]
                return partial(_gathered, word == "any", tests)
        if "not" in names:
            fields.only(mapping, ("not",))
            inner = self.condition(fields.get(mapping, "not"), positive, not negated)
            return partial(_negated, inner)
        return self.comparison(mapping, positive)

    def operand(self, mapping: Mapping) -> Operand:
        """The path or key that a mapping names."""
        if "path" in mapping and "key" in mapping:
            raise RuleError("a condition has one of `path` and `key`", mapping.place)
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
                if not isinstance(plain(entry.value), bool):
                    raise RuleError(f"`{entry.name}` is true or false", entry.value.place)
                tests.append(_state(operand, entry.name, plain(entry.value) is True))
                if positive and entry.name == "known" and plain(entry.value) is True:
                    self._need(operand)
                continue
            compare = comparisons.OPERATORS.get(entry.name)
            if compare is None:
                raise RuleError(
                    f"no operator `{entry.name}`: there are {', '.join((*comparisons.OPERATORS, *STATES))}",
                    entry.key.place,
                )
            if positive:
                self._need(operand)
            tests.append(self.compared(operand, compare, entry, positive))
        if not tests:
            raise RuleError(f"nothing is asked of `{operand.name}`", mapping.place)
        return partial(_gathered, False, tests)

    def compared(self, operand: Operand, compare: comparisons.Comparison, entry: Entry, positive: bool) -> Test:
        """A comparison with a literal, a path or a key."""
        if isinstance(entry.value, Mapping):
            other = self.operand(entry.value)
            if positive:
                self._need(other)
            fields.only(entry.value, ("path", "key"))
            if operand.info and other.info and operand.info.unit != other.info.unit:
                units = operand.info.unit or "nothing", other.info.unit or "nothing"
                message = f"`{operand.name}` counts {units[0]}, `{other.name}` {units[1]}"
                raise RuleError(message, entry.value.place)
            return partial(_compared, (operand, other), lambda view: compare(operand.value(view), other.value(view)))
        literal = comparisons.literal(operand.name, operand.info, operand.is_key, entry)
        return partial(_compared, (operand,), lambda view: compare(operand.value(view), literal))

    def _need(self, operand: Operand) -> None:
        if not operand.is_key and self.on == "run" and operand.name not in self.needs:
            self.needs.append(operand.name)


def _gathered(decisive: bool, tests: list[Test], view: View) -> bool | None:
    """`any` is decided by the first true, `all` by the first false; else by what is unknown."""
    found: bool | None = not decisive
    for test in tests:
        held = test(view)
        if held is decisive:
            return decisive
        if held is None:
            found = None
    return found


def _negated(inner: Test, view: View) -> bool | None:
    held = inner(view)
    return None if held is None else not held


def _compared(operands: tuple[Operand, ...], holds: Callable[[View], bool], view: View) -> bool | None:
    missing = [operand for operand in operands if not operand.known(view)]
    if missing:
        return False if any(operand.is_key for operand in missing) else None
    return holds(view)


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
