"""Rules that are data: `<name>.rule.yaml`, checked when loaded, without code and without an expression language.

A condition compares a path of the run, or a key as the user wrote it, with a literal (`"24 GiB"` is converted to the
path's unit), another path or another key; `all`, `any` and `not` nest. What is unknown meets no condition.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import cast

from trainlint import fields
from trainlint.conditions import Choice, Compiler, Operand, Test, View
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
    Spot,
    Target,
    remove_line,
    rename_key,
    said,
    set_value,
    written,
)
from trainlint.run import Value, path_info

FIELDS = frozenset(
    ("severity", "formats", "on", "profiles", "flag", "unless", "at", "message", "help", "notes", "fix", "outranks")
)
PARTS = ("key", "value", "note", "said")
_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class Template:
    """A text with `{key}`, `{value}`, `{note}`, `{said}` (key and value), and the same of a path: `{path.key}`, …"""

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
            case Value(), "said" if spot.key:
                return said(spot)
            case Entry(), "said":
                return said(spot)
            case Value(), "key":
                return spot.key or operand.name
            case Value(), "note":
                return spot.note
            case Value(), _:
                return _bare(spot.raw) if spot.written and spot.raw else written(spot.value)
            case Entry(), "key":
                return spot.name if isinstance(operand, Choice) else operand.name
            case Entry(value=Scalar(raw=raw)), _:
                return _bare(raw)
            case Entry(), _:
                return written(plain(spot.value))
            case _:
                return operand.name


def _bare(raw: str) -> str:
    """A scalar's text without the quotes around it."""
    return raw[1:-1] if len(raw) > 1 and raw[0] == raw[-1] and raw[0] in "\"'" else raw


def _split(name: str, at: Operand, operands: dict[str, Operand]) -> tuple[Operand, str]:
    if name in PARTS:
        return at, name
    head, _, part = name.rpartition(".")
    if part in PARTS and head in operands:
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
            seen = View(partial(_of_file, view), (view.fragment,))
        if self.flag(seen) is not True or (self.unless is not None and self.unless(seen)):
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
        return set_value(entry.value, _spelled(text, fragment.document.syntax), safety)  # type: ignore[arg-type]

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


def _of_file(view: FileView, path: str) -> Value[object] | None:
    if path.startswith("versions."):
        return view.versions.get(path.removeprefix("versions."))  # type: ignore[return-value]
    return view.fragment.values.get(path)


PYTHON = {"true": "True", "false": "False", "null": "None"}


def _spelled(text: str, syntax: str) -> str:
    """A new value as the syntax writes it: JSON, TOML and Python want words in quotes, Python its own constants."""
    if syntax not in ("json", "toml", "python"):
        return text
    if syntax == "python" and text in PYTHON:
        return PYTHON[text]
    try:
        json.loads(text)
    except ValueError:
        return json.dumps(text, ensure_ascii=False)
    return text


def load(document: Document) -> RuleSpec:
    """A rule from its file. Raises RuleError, with its place, for anything the engine could not carry out."""
    for problem in document.problems:
        raise RuleError(problem.message, problem.place)
    root = fields.mapping(document.roots[0] if document.roots else None, "a rule file", Place(document.file))
    for entry in root.entries:
        if entry.name not in FIELDS:
            raise RuleError(f"a rule has no field `{entry.name}`", entry.key.place)
    severity = fields.text(fields.get(root, "severity"), "severity")
    if severity not in SEVERITIES:
        raise RuleError(
            f"`severity` is one of {', '.join(SEVERITIES)}, not `{severity}`", fields.get(root, "severity").place
        )
    on = fields.text(root.get("on"), "on") if "on" in root else "run"
    if on not in ("run", "file"):
        raise RuleError(f"`on` is run or file, not `{on}`", fields.get(root, "on").place)
    formats = fields.texts(root, "formats")
    compiler = Compiler(formats, on)  # type: ignore[arg-type]
    flag = compiler.condition(fields.get(root, "flag"))
    first = next(iter(compiler.operands.values()))
    unless = Compiler(formats, on).condition(fields.get(root, "unless"), False) if "unless" in root else None  # type: ignore[arg-type]
    at = _at(root, compiler) or first
    template = partial(_template, at=at, compiler=compiler)
    notes: list[tuple[Operand, Template]] = []
    if "notes" in root:
        for entry in fields.mapping(fields.get(root, "notes"), "`notes`").entries:
            notes.append((_operand_named(entry.name, compiler, entry.key.place), template(entry.value)))
    data = DataRule(
        flag,
        unless,
        at,
        template(fields.get(root, "message")),
        template(fields.get(root, "help")) if "help" in root else None,
        tuple(notes),
        _fix_of(root, compiler),
    )
    chosen, target = severity, cast(Target, on)
    needs = tuple(compiler.needs)
    return RuleSpec(
        chosen, data, target, needs, formats, fields.texts(root, "profiles"), fields.texts(root, "outranks")
    )


def _at(root: Mapping, compiler: Compiler) -> Operand | None:
    node = root.get("at")
    if isinstance(node, Sequence) and node.items:
        among = tuple(_operand_named(fields.text(item, "at"), compiler, item.place) for item in node.items)
        return Choice(among[0].name, among[0].is_key, among[0].info, among[0].formats, among)
    return None if node is None else _operand_named(fields.text(node, "at"), compiler, node.place)


def _operand_named(name: str, compiler: Compiler, place: Place) -> Operand:
    """A name that the conditions used, else a path, else a key."""
    return compiler.operands.get(name) or compiler.named(name, path_info(name) is None, place)


def _template(node: Node, at: Operand, compiler: Compiler) -> Template:
    text = fields.text(node, "a text")
    for name in _PLACEHOLDER.findall(text):
        try:
            _split(name, at, compiler.operands)
        except KeyError:
            head = name.rpartition(".")[0] if name.rpartition(".")[2] in PARTS else name
            if path_info(head) is None:
                raise RuleError(f"`{{{name}}}` names nothing that the rule asks for", node.place) from None
            compiler.named(head, False, node.place)
    return Template(text, at, compiler.operands)


def _fix_of(root: Mapping, compiler: Compiler) -> tuple[str, Operand, str, str] | None:
    if "fix" not in root:
        return None
    mapping = fields.mapping(fields.get(root, "fix"), "`fix`")
    safety = fields.text(mapping.get("safety"), "safety") if "safety" in mapping else "unsafe"
    if safety not in ("safe", "unsafe"):
        raise RuleError(f"`safety` is safe or unsafe, not `{safety}`", mapping.place)
    for action in ("set", "rename", "remove"):
        node = mapping.get(action)
        if node is None:
            continue
        fields.only(mapping, ("safety", action) if action == "remove" else ("safety", action, "to"))
        to = "" if action == "remove" else fields.text(fields.get(mapping, "to"), "to")
        return action, _operand_named(fields.text(node, action), compiler, node.place), to, safety
    raise RuleError("`fix` needs one of set, rename, remove", mapping.place)
