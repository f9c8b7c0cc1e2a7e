"""Config classes by their source alone: fields of dataclasses and pydantic models, arguments of `__init__`.

Nothing is imported or run. A field is what `Field` says; a default that is no literal is COMPUTED.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

COMPUTED = object()
"""A default that the code computes."""
_FIELDS = ("field", "Field", "pydantic_field")
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
}
_FACTORIES: dict[str, Any] = {"list": [], "dict": {}, "set": []}
_WRAPPERS = ("Annotated", "Final", "SkipJsonSchema", "Required", "NotRequired")
_NO_FIELDS = ("ClassVar", "InitVar", "KW_ONLY")


@dataclass(frozen=True)
class Field:
    """One key of a config: `default` is COMPUTED where the code decides; `choices` where the type lists them."""

    types: tuple[str, ...] = ()
    default: Any = COMPUTED
    required: bool = False
    choices: tuple[Any, ...] | None = None
    deprecated: bool = False


@dataclass
class Package:
    """The classes of some sources, by name; of a name that several define the one with the longest body counts."""

    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    enums: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    aliases: dict[str, ast.expr] = field(default_factory=dict)

    def fields(self, name: str, seen: frozenset[str] = frozenset()) -> dict[str, Field]:
        """The fields of a class with those of its bases in the package, the bases' first."""
        node = self.classes.get(name)
        if node is None or name in seen:
            return {}
        found: dict[str, Field] = {}
        for base in reversed(node.bases):
            found.update(self.fields(_last(base), seen | {name}))
        made = dict(self._init(node))
        return made or {**found, **dict(self._own(node))}

    def extends(self, name: str, known: Iterable[str], seen: frozenset[str] = frozenset()) -> bool:
        """Whether a class has one of some others above it."""
        node = self.classes.get(name)
        if node is None or name in seen:
            return False
        bases = [_last(base) for base in node.bases]
        return any(base in known or self.extends(base, known, seen | {name}) for base in bases)

    def _own(self, node: ast.ClassDef) -> Iterator[tuple[str, Field]]:
        modelled = any(_last(one) == "dataclass" for one in node.decorator_list) or bool(node.bases)
        for below in node.body if modelled else ():
            if isinstance(below, ast.AnnAssign) and isinstance(below.target, ast.Name):
                kind = below.annotation.value if isinstance(below.annotation, ast.Subscript) else below.annotation
                name = below.target.id
                if _last(kind) not in _NO_FIELDS and not name.startswith("_") and name != "model_config":
                    yield name, self._field(below.annotation, below.value)

    def _init(self, node: ast.ClassDef) -> Iterator[tuple[str, Field]]:
        for below in node.body:
            if isinstance(below, ast.FunctionDef) and below.name == "__init__":
                positional = [*below.args.posonlyargs, *below.args.args]
                blank: list[ast.expr | None] = [None] * (len(positional) - len(below.args.defaults))
                pairs = [*zip(positional, [*blank, *below.args.defaults], strict=True)]
                pairs += zip(below.args.kwonlyargs, below.args.kw_defaults, strict=True)
                for argument, default in pairs:
                    if argument.arg not in ("self", "args", "kwargs"):
                        found = self._field(argument.annotation, default)
                        silent = argument.annotation is None and found.default is None
                        yield argument.arg, replace(found, default=COMPUTED) if silent else found

    def _field(self, annotation: ast.expr | None, value: ast.expr | None) -> Field:
        types, choices, notes = self._types(annotation)
        given: ast.expr | None = value
        deprecated = False
        for call in (value, *notes):
            if not (isinstance(call, ast.Call) and _last(call.func) in _FIELDS):
                continue
            keywords = {keyword.arg: keyword.value for keyword in call.keywords}
            if call is value or given is None:
                given = call.args[0] if call.args else keywords.get("default", keywords.get("default_factory"))
            texts = [
                one.value for one in ast.walk(call) if isinstance(one, ast.Constant) and isinstance(one.value, str)
            ]
            deprecated |= "deprecated" in keywords or any(
                text.lower().lstrip("(").startswith("deprecated") for text in texts
            )
        missing = given is None or (isinstance(given, ast.Constant) and given.value is ...)
        default = COMPUTED if missing else self._value(given)
        return Field(types, default, missing, choices, deprecated)

    def _value(self, node: ast.expr | None) -> Any:
        if isinstance(node, ast.Lambda):
            return self._value(node.body)
        if isinstance(node, ast.Name) and node.id in _FACTORIES:
            return _FACTORIES[node.id]
        if isinstance(node, ast.Name):
            return self.constants.get(node.id, COMPUTED)
        if isinstance(node, ast.Attribute):
            inner = node.value if node.attr == "value" else node
            return self.constants.get(ast.unparse(inner), COMPUTED)
        if isinstance(node, ast.BinOp):
            left, right, act = self._value(node.left), self._value(node.right), _OPERATORS.get(type(node.op))
            known = act is not None and isinstance(left, int | float) and isinstance(right, int | float)
            return act(left, right) if act is not None and known else COMPUTED
        try:
            value = ast.literal_eval(node) if node is not None else COMPUTED
        except (ValueError, TypeError, SyntaxError, RecursionError):
            return COMPUTED
        return list(value) if isinstance(value, tuple | set) else value

    def _types(self, node: ast.expr | None) -> tuple[tuple[str, ...], tuple[Any, ...] | None, list[ast.expr]]:
        """The names of a type, the choices it lists, and what `Annotated` notes."""
        names: dict[str, None] = {}
        choices: dict[Any, None] = {}
        notes: list[ast.expr] = []
        opened: set[str] = set()

        def read(one: ast.expr) -> None:
            match one:
                case ast.Constant(value=None):
                    names["null"] = None
                case ast.Constant(value=str(text)):
                    try:
                        read(ast.parse(text, mode="eval").body)
                    except SyntaxError:
                        names[text] = None
                case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                    read(left)
                    read(right)
                case ast.Subscript(value=owner, slice=inside):
                    parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
                    base = _last(owner)
                    if base == "Optional":
                        read(inside)
                        names["null"] = None
                    elif base == "Union":
                        for part in parts:
                            read(part)
                    elif base in _WRAPPERS:
                        read(parts[0])
                        notes.extend(parts[1:])
                    elif base == "Literal":
                        for part in parts:
                            value = self._value(part)
                            names["null" if value is None else type(value).__name__] = None
                            if value is not None and value is not COMPUTED:
                                choices[value] = None
                    else:
                        names[ast.unparse(one).replace("typing.", "")] = None
                case ast.Name(id=name) if name in self.aliases and name not in opened:
                    opened.add(name)
                    read(self.aliases[name])
                case _:
                    name = _last(one)
                    names["null" if name == "None" else name] = None
                    choices.update(dict.fromkeys(self.enums.get(name, ())))

        if node is not None:
            read(node)
        return tuple(names), tuple(choices) or None, notes


def package(sources: Mapping[str, str]) -> Package:
    """The classes of a package from its sources by path; what does not parse is left out."""
    found = Package()
    for path in sorted(sources):
        try:
            module = ast.parse(sources[path])
        except (SyntaxError, ValueError, RecursionError):
            continue
        for node in module.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                value = found._value(node.value)
                if isinstance(node.value, ast.Subscript):
                    found.aliases.setdefault(node.targets[0].id, node.value)
                elif value is not COMPUTED:
                    found.constants.setdefault(node.targets[0].id, value)
        for one in ast.walk(module):
            if isinstance(one, ast.ClassDef):
                known = found.classes.get(one.name)
                if known is None or len(known.body) < len(one.body):
                    found.classes[one.name] = one
                if any(_last(base).endswith("Enum") for base in one.bases):
                    found.enums[one.name] = tuple(_members(found, one))
    return found


def _members(found: Package, node: ast.ClassDef) -> Iterator[Any]:
    for below in node.body:
        if isinstance(below, ast.Assign) and isinstance(below.targets[0], ast.Name):
            value = found._value(below.value)
            value = below.targets[0].id if value is COMPUTED else value
            found.constants[f"{node.name}.{below.targets[0].id}"] = value
            yield value


def _last(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value) | ast.Call(func=value):
            return _last(value)
        case ast.Constant(value=str(text)):
            return text.rpartition(".")[2]
    return ""
