"""Rules that are data: `<name>.rule.yaml`, checked when loaded, without code and without an expression language.

A condition compares a path of the run, or a key as the user wrote it, with a literal (`"24 GiB"` is converted to the
path's unit), another path or another key; `all`, `any` and `not` nest. What is unknown meets no condition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from trainlint.documents import Document, Entry, Mapping, Node, Place, Scalar, Sequence, plain
from trainlint.formats import Fragment
from trainlint.rule import (
    SEVERITIES,
    FileView,
    Fix,
    Found,
    RuleError,
    RuleSpec,
    RunView,
    Severity,
    Spot,
    Target,
    remove_line,
    rename_key,
    set_value,
    written,
)
from trainlint.run import Value, path_info
from trainlint.run.vocabulary import PathInfo
from trainlint.units import UnitError, parse

FIELDS = frozenset(
    ("severity", "formats", "on", "profiles", "flag", "unless", "at", "message", "help", "notes", "fix", "outranks")
)
_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
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
    from trainlint.facts.versions import contains

    return contains(str(right), str(left))


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
        mapping = _mapping(node, "a condition")
        names = mapping.names()
        for word, gather in (("all", all), ("any", any)):
            if word in names:
                _only(mapping, (word,))
                tests = [self.condition(item, positive and word == "all") for item in _items(mapping, word)]
                return partial(_gathered, gather, tests)
        if "not" in names:
            _only(mapping, ("not",))
            inner = self.condition(_get(mapping, "not"), False)
            return lambda view: not inner(view)
        return self.comparison(mapping, positive)

    def operand(self, mapping: Mapping) -> Operand:
        """The path or key that a mapping names."""
        for word in ("path", "key"):
            node = mapping.get(word)
            if node is not None:
                return self.named(_text(node, word), word == "key", node.place)
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
            _only(entry.value, ("path", "key"))
            if operand.info and other.info and operand.info.unit != other.info.unit:
                message = f"`{operand.name}` counts {operand.info.unit or 'nothing'}, `{other.name}` {other.info.unit or 'nothing'}"
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


@dataclass(frozen=True, slots=True)
class Template:
    """A text with `{key}`, `{value}` and `{path.key}`, `{path.value}`, `{path.note}`."""

    text: str
    at: Operand
    operands: dict[str, Operand]

    def fill(self, view: View) -> str:
        """The text for a run or file."""
        return _PLACEHOLDER.sub(lambda found: self._one(found[1], view), self.text)

    def _one(self, name: str, view: View) -> str:
        operand, part = _split(name, self.at, self.operands)
        spot = operand.spot(view)
        match spot, part:
            case Value(), "key":
                return spot.key or operand.name
            case Value(), "note":
                return spot.note
            case Value(), _:
                return spot.raw if spot.written and spot.raw else written(spot.value)
            case Entry(), "key":
                return operand.name
            case Entry(value=Scalar(raw=raw)), _:
                return raw
            case Entry(), _:
                return written(plain(spot.value))
            case _:
                return operand.name


def _split(name: str, at: Operand, operands: dict[str, Operand]) -> tuple[Operand, str]:
    if name in ("key", "value", "note"):
        return at, name
    head, _, part = name.rpartition(".")
    if part in ("key", "value", "note") and head in operands:
        return operands[head], part
    if name in operands:
        return operands[name], "value"
    raise KeyError(name)


@dataclass(frozen=True, slots=True)
class DataRule:
    """A compiled rule file: called like a Python rule."""

    flag: Test
    unless: Test | None
    at: Operand
    message: Template
    help: Template | None
    notes: tuple[tuple[Operand, Template], ...]
    fix: tuple[str, Operand, str, str] | None

    def __call__(self, view: RunView | FileView) -> Iterator[Found]:
        """Yield the finding where the flag holds."""
        if isinstance(view, RunView):
            seen = View(view.run.get, view.fragments)
        else:
            seen = View(view.fragment.values.get, (view.fragment,))
        if not self.flag(seen) or (self.unless is not None and self.unless(seen)):
            return
        spot = self.at.spot(seen)
        if spot is None or (isinstance(spot, Value) and spot.place is None):
            root = seen.fragments[0].root
            place: Spot = root.entries[0].key if root is not None and root.entries else Place(seen.fragments[0].file)
        else:
            place = spot
        notes = [(operand.spot(seen), template.fill(seen)) for operand, template in self.notes]
        yield Found(
            at=place,
            message=self.message.fill(seen),
            help=self.help.fill(seen) if self.help else "",
            notes=notes,
            fix=self._fix(seen),
        )

    def _fix(self, view: View) -> Fix | None:
        if self.fix is None:
            return None
        action, operand, text, safety = self.fix
        assert safety in ("safe", "unsafe")
        found = self._entry(operand, view)
        if found is None:
            return None
        fragment, entry = found
        if action == "rename":
            return rename_key(entry, text, safety)  # type: ignore[arg-type]
        if action == "remove":
            return remove_line(fragment.document, entry, safety)  # type: ignore[arg-type]
        return set_value(entry.value, text, safety)  # type: ignore[arg-type]

    def _entry(self, operand: Operand, view: View) -> tuple[Fragment, Entry] | None:
        if operand.is_key:
            return view.key(operand.name, operand.formats)
        spot = operand.spot(view)
        if not isinstance(spot, Value) or spot.place is None:
            return None
        for fragment in view.fragments:
            entry = fragment.entry(spot.key)
            if entry is not None and entry.value.place == spot.place:
                return fragment, entry
        return None


def load(document: Document) -> RuleSpec:
    """A rule from its file. Raises RuleError, with its place, for anything the engine could not carry out."""
    for problem in document.problems:
        raise RuleError(problem.message, problem.place)
    root = _mapping(document.roots[0] if document.roots else None, "a rule file", Place(document.file))
    for entry in root.entries:
        if entry.name not in FIELDS:
            raise RuleError(f"a rule has no field `{entry.name}`", entry.key.place)
    severity = _text(_get(root, "severity"), "severity")
    if severity not in SEVERITIES:
        raise RuleError(f"`severity` is one of {', '.join(SEVERITIES)}, not `{severity}`", _get(root, "severity").place)
    on = _text(root.get("on"), "on") if "on" in root else "run"
    if on not in ("run", "file"):
        raise RuleError(f"`on` is run or file, not `{on}`", _get(root, "on").place)
    formats = _texts(root, "formats")
    compiler = Compiler(formats, on)  # type: ignore[arg-type]
    flag = compiler.condition(_get(root, "flag"))
    first = next(iter(compiler.operands.values()))
    unless = Compiler(formats, on).condition(_get(root, "unless"), False) if "unless" in root else None  # type: ignore[arg-type]
    at = _at(root, compiler) or first
    template = partial(_template, at=at, compiler=compiler)
    notes: list[tuple[Operand, Template]] = []
    if "notes" in root:
        for entry in _mapping(_get(root, "notes"), "`notes`").entries:
            notes.append((_operand_named(entry.name, compiler, entry.key.place), template(entry.value)))
    data = DataRule(
        flag,
        unless,
        at,
        template(_get(root, "message")),
        template(_get(root, "help")) if "help" in root else None,
        tuple(notes),
        _fix_of(root, compiler),
    )
    chosen: Severity = severity  # type: ignore[assignment]
    target: Target = on  # type: ignore[assignment]
    needs = tuple(compiler.needs)
    return RuleSpec(chosen, data, target, needs, formats, _texts(root, "profiles"), _texts(root, "outranks"))


def _at(root: Mapping, compiler: Compiler) -> Operand | None:
    node = root.get("at")
    return None if node is None else _operand_named(_text(node, "at"), compiler, node.place)


def _operand_named(name: str, compiler: Compiler, place: Place) -> Operand:
    """A name that the conditions used, else a path, else a key."""
    return compiler.operands.get(name) or compiler.named(name, path_info(name) is None, place)


def _template(node: Node, at: Operand, compiler: Compiler) -> Template:
    text = _text(node, "a text")
    for name in _PLACEHOLDER.findall(text):
        try:
            _split(name, at, compiler.operands)
        except KeyError:
            head = name.rpartition(".")[0] if name.rpartition(".")[2] in ("key", "value", "note") else name
            if path_info(head) is None:
                raise RuleError(f"`{{{name}}}` names nothing that the rule asks for", node.place) from None
            compiler.named(head, False, node.place)
    return Template(text, at, compiler.operands)


def _fix_of(root: Mapping, compiler: Compiler) -> tuple[str, Operand, str, str] | None:
    if "fix" not in root:
        return None
    mapping = _mapping(_get(root, "fix"), "`fix`")
    safety = _text(mapping.get("safety"), "safety") if "safety" in mapping else "unsafe"
    if safety not in ("safe", "unsafe"):
        raise RuleError(f"`safety` is safe or unsafe, not `{safety}`", mapping.place)
    for action in ("set", "rename", "remove"):
        node = mapping.get(action)
        if node is None:
            continue
        _only(mapping, ("safety", action, "to"))
        to = "" if action == "remove" else _text(_get(mapping, "to"), "to")
        return action, _operand_named(_text(node, action), compiler, node.place), to, safety
    raise RuleError("`fix` needs one of set, rename, remove", mapping.place)


def _mapping(node: Node | None, what: str, place: Place | None = None) -> Mapping:
    if isinstance(node, Mapping):
        return node
    raise RuleError(f"{what} is a mapping", node.place if node is not None else place)


def _get(mapping: Mapping, name: str) -> Node:
    node = mapping.get(name)
    if node is None:
        raise RuleError(f"`{name}` is missing", mapping.place)
    return node


def _items(mapping: Mapping, name: str) -> tuple[Node, ...]:
    node = _get(mapping, name)
    if not isinstance(node, Sequence) or not node.items:
        raise RuleError(f"`{name}` is a list of conditions", node.place)
    return node.items


def _text(node: Node | None, name: str) -> str:
    if isinstance(node, Scalar) and isinstance(node.value, str | int | float | bool):
        return node.value if isinstance(node.value, str) else node.raw
    raise RuleError(f"`{name}` is a text", node.place if node is not None else None)


def _texts(mapping: Mapping, name: str) -> tuple[str, ...]:
    node = mapping.get(name)
    if node is None:
        return ()
    if not isinstance(node, Sequence):
        raise RuleError(f"`{name}` is a list", node.place)
    return tuple(_text(item, name) for item in node.items)


def _only(mapping: Mapping, names: tuple[str, ...]) -> None:
    for entry in mapping.entries:
        if entry.name not in names:
            raise RuleError(f"`{entry.name}` does not belong here", entry.key.place)


def _suggestion(name: str) -> str:
    from difflib import get_close_matches

    from trainlint.run import paths

    close = get_close_matches(name, paths(), 1)
    return f", did you mean `{close[0]}`" if close else ""
