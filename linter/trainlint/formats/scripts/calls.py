"""The calls of a training script with their literal arguments, and the conditions they stand under.

Nothing is imported or run. Names are resolved through the file's imports (`transformers.TrainingArguments`) and through
its own subclasses; a name that it neither imports nor defines keeps its bare form.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from trainlint.documents import Document, Entry, Mapping, Node, Place
from trainlint.formats.scripts.arguments import Arguments, arguments
from trainlint.formats.scripts.literals import Literals, bound_once
from trainlint.formats.scripts.syntax_nodes import called, holds, nodes
from trainlint.formats.scripts.training_names import KNOWN

AMP = frozenset(("autocast", "GradScaler", "ShardedGradScaler", "to", "compile", "requires_grad_"))
"""Calls whose arguments are not followed to the script's own arguments."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call.

    `name` is the dotted origin, of a method the receiver as written (`model.gradient_checkpointing_enable`).
    `keywords` holds the literal arguments as a config's mapping would, `sources` the text of all. `unknown` names
    keywords whose value only a run decides, `open` says that a `**mapping` nobody can read may add more. `conditional`:
    an `if` that is not `__name__ == "__main__"` decides whether it is reached, `condition` is its text.
    """

    name: str
    place: Place
    keywords: Mapping
    positional: tuple[Node | None, ...] = ()
    sources: dict[str, str] = field(default_factory=dict)
    first: str = ""
    unknown: frozenset[str] = frozenset()
    open: bool = False
    target: str = ""
    scope: str = ""
    conditional: bool = False
    condition: str = ""

    @property
    def short(self) -> str:
        """The last part of the name."""
        return self.name.rpartition(".")[2]

    @property
    def receiver(self) -> str:
        """What stands before the last part."""
        return self.name.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Assignment:
    """An assignment to an attribute: `model.config.use_cache = True`; `value` is None where only a run decides."""

    target: str
    value: Node | None
    source: str
    place: Place
    conditional: bool = False


@dataclass(slots=True)
class Script:
    """What a script says: calls and attribute assignments in order, imports, own classes by their bases.

    `literals` reads expressions, `followed` also by the defaults of the script's own `arguments`. `lines`
    are those on which a call begins.
    """

    literals: Literals
    followed: Literals
    arguments: Arguments
    imports: dict[str, str] = field(default_factory=dict)
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def named(self, *names: str) -> list[Call]:
        """The calls whose last part is one of these names."""
        return [call for call in self.calls if call.short in names]

    def call_of(self, source: str) -> Call | None:
        """The call whose text this is bound to: `args` in `args=args`; None where it is bound by several."""
        found = [call for call in self.calls if call.target == source]
        return found[0] if len(found) == 1 else None

    def origin(self, name: str) -> str:
        """A class's origin through the file's own subclasses: `MyTrainer` → `transformers.Trainer`."""
        seen: set[str] = set()
        while name in self.bases and self.bases[name] and name not in seen:
            seen.add(name)
            name = self.bases[name][0]
        return name


def script(document: Document) -> Script:
    """Read a script's syntax tree."""
    module = document.module
    assert module is not None
    every = nodes(module)
    bound, given = bound_once(every), arguments(every, document.text)
    followed = Literals(document, bound, {name: dict(fields) for name, fields in given.namespaces.items()})
    found = Script(Literals(document, bound), followed, given)
    for node in every:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    found.imports[alias.asname or alias.name.partition(".")[0]] = (
                        alias.name if alias.asname else alias.name.partition(".")[0]
                    )
            case ast.ImportFrom(module=origin, names=names, level=level):
                for alias in names:
                    found.imports[alias.asname or alias.name] = "." * level + f"{origin or ''}.{alias.name}"
            case ast.ClassDef(name=name, bases=bases):
                found.bases[name] = tuple(_dotted(base, found.imports) for base in bases)
    shorts = KNOWN | {name for name, origin in found.imports.items() if origin.rpartition(".")[2] in KNOWN}
    shorts |= {name for name in found.bases if found.origin(name).rpartition(".")[2] in KNOWN}
    found.lines = sorted(node.lineno for node in every if isinstance(node, ast.Call) and called(node) in shorts)
    _Walk(found, shorts).block(module.body)
    return found


def dotted(expression: ast.expr) -> str:
    """`a.b.c` as text, with `()` for calls and `[]` for subscripts on the way; empty for anything else."""
    match expression:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            owner = dotted(value)
            return f"{owner}.{attr}" if owner else f"?.{attr}"
        case ast.Call(func=func):
            return dotted(func) + "()"
        case ast.Subscript(value=value):
            return dotted(value) + "[]"
    return ""


def _dotted(expression: ast.expr, imports: dict[str, str]) -> str:
    text = dotted(expression)
    head, dot, tail = text.partition(".")
    return imports.get(head, head) + dot + tail


def guards(test: ast.expr) -> bool:
    """Whether a condition decides something; `if __name__ == "__main__"` and constants do not."""
    match test:
        case ast.Compare(left=ast.Name(id="__name__")):
            return False
        case ast.Constant():
            return False
    return True


def leaves(block: list[ast.stmt]) -> bool:
    """Whether the block of an `if` ends by leaving the one around it, so that what follows is conditional too."""
    return bool(block) and isinstance(block[-1], ast.Continue | ast.Break | ast.Return | ast.Raise)


class _Walk:
    """Visits statements in order, with the conditions they stand under."""

    def __init__(self, found: Script, shorts: frozenset[str]) -> None:
        self.found, self.shorts = found, shorts
        self.conditions: list[tuple[bool, ast.expr | None]] = []
        self.scope: list[str] = []

    def block(self, body: list[ast.stmt]) -> None:
        kept = len(self.conditions)
        for statement in body:
            self.statement(statement)
            if (
                isinstance(statement, ast.If)
                and guards(statement.test)
                and leaves(statement.body)
                and not statement.orelse
            ):
                self.conditions.append((False, statement.test))
        del self.conditions[kept:]

    def under(self, test: ast.expr | None, body: list[ast.stmt], holds: bool = True) -> None:
        self.conditions.append((holds, test))
        self.block(body)
        self.conditions.pop()

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.If(test=test, body=body, orelse=orelse):
                self.expression(test)
                if guards(test):
                    self.under(test, body)
                    self.under(test, orelse, holds=False)
                elif isinstance(test, ast.Constant) and not test.value:
                    self.block(orelse)
                else:
                    self.block(body)
            case ast.FunctionDef(name=name, body=body) | ast.AsyncFunctionDef(name=name, body=body):
                kept, self.conditions = self.conditions, []
                self.scope.append(name)
                self.block(body)
                self.scope.pop()
                self.conditions = kept
            case ast.ClassDef(name=name, body=body):
                self.scope.append(name)
                self.block(body)
                self.scope.pop()
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=finalbody):
                self.block(body)
                for handler in handlers:
                    self.under(None, handler.body)
                self.block(orelse)
                self.block(finalbody)
            case ast.Match(subject=subject, cases=cases):
                for case in cases:
                    self.under(subject, case.body)
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=value):
                if value is not None:
                    first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
                    self.expression(value, dotted(first))
                if isinstance(target, ast.Attribute) and value is not None:
                    literals = self.found.literals
                    conditional = bool(self.conditions)
                    self.found.assignments.append(
                        Assignment(
                            dotted(target),
                            literals.node(value),
                            literals.source(value),
                            literals.place(node),
                            conditional,
                        )
                    )
            case _:
                for below in ast.iter_child_nodes(node):
                    match below:
                        case ast.expr():
                            self.expression(below)
                        case ast.withitem(context_expr=context):
                            self.expression(context)
                for name in ("body", "orelse"):
                    self.block(getattr(node, name, []))

    def expression(self, node: ast.expr, target: str = "") -> None:
        if not holds(self.found.lines, node):
            return
        for call, conditional in _calls_in(node):
            if called(call) in self.shorts:
                self.found.calls.append(self._call(call, target if call is node else "", conditional))

    def _call(self, node: ast.Call, target: str, conditional: bool) -> Call:
        # what is decided at run time is often switched off by an argument's default: its default proves nothing
        literals = self.found.literals if called(node) in AMP else self.found.followed
        entries: list[Entry] = []
        unknown: set[str] = set()
        sources: dict[str, str] = {}
        more = any(isinstance(argument, ast.Starred) for argument in node.args)
        for keyword in node.keywords:
            value = literals.node(keyword.value)
            if keyword.arg is None:
                if isinstance(value, Mapping):
                    entries += value.entries
                else:
                    more = True
                continue
            sources[keyword.arg] = literals.source(keyword.value)
            if value is None:
                unknown.add(keyword.arg)
            else:
                entries.append(Entry(literals.keyword(keyword), value))
        place = literals.place(node)
        conditions = [
            "an exception" if test is None else literals.source(test) if holds else f"not ({literals.source(test)})"
            for holds, test in self.conditions
        ]
        return Call(
            _dotted(node.func, self.found.imports),
            place,
            Mapping(tuple(entries), place),
            tuple(literals.node(argument) for argument in node.args),
            sources,
            literals.source(node.args[0]) if node.args else "",
            frozenset(unknown),
            more,
            target,
            ".".join(self.scope),
            conditional or bool(conditions),
            " and ".join(conditions),
        )


def _calls_in(node: ast.AST, conditional: bool = False) -> Iterator[tuple[ast.Call, bool]]:
    """Calls inside an expression in the order they are made, the innermost first; lambdas are left out."""
    if isinstance(node, ast.Lambda):
        return
    for name, below in ast.iter_fields(node):
        inside = conditional or (isinstance(node, ast.IfExp) and name != "test")
        for item in below if isinstance(below, list) else [below]:
            if isinstance(item, ast.AST):
                yield from _calls_in(item, inside)
    if isinstance(node, ast.Call):
        yield node, conditional
