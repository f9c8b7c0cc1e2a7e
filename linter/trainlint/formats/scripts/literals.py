"""Python expressions as config nodes: what a script says literally, without running it.

Literal are constants, containers of them, arithmetic on numbers, `dict(...)`, torch dtypes (`torch.bfloat16` reads as
the word `bfloat16`), members of configuration enums, and names that the file binds exactly once to one of these.
Anything else has no node (None).
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from trainlint.documents import Document, Entry, Mapping, Node, Place, Scalar, Sequence

DTYPES = {
    "float32": "float32",
    "float": "float32",
    "bfloat16": "bfloat16",
    "float16": "float16",
    "half": "float16",
    "float64": "float64",
    "float8_e4m3fn": "float8",
    "uint8": "uint8",
    "int8": "int8",
}
"""torch's dtypes and their aliases → one word each."""

ENUMS = {
    "IntervalStrategy": str.lower,
    "SaveStrategy": str.lower,
    "SchedulerType": str.lower,
    "OptimizerNames": str.lower,
    "PrecisionType": str.lower,
    "DistributedType": str.upper,
    "TaskType": str.upper,
}
"""Enums of the libraries whose members stand for a word in a config."""

_LIMIT = 1 << 53
_DEPTH = 20
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


@dataclass(frozen=True, slots=True)
class Literals:
    """Reads expressions of one script. `bound` are the names that the file binds once, with their expressions;
    `namespaces` the defaults of its arguments by the variable that holds them.
    """

    document: Document
    bound: dict[str, ast.expr]
    namespaces: dict[str, dict[str, ast.expr]] = field(default_factory=dict)

    def place(self, node: ast.expr | ast.stmt | ast.keyword | ast.excepthandler) -> Place:
        """Where a syntax node stands; `ast` counts bytes, places count characters."""
        line, end_line = node.lineno, node.end_lineno or node.lineno
        start = self._column(line, node.col_offset)
        return Place(self.document.file, line, start, end_line, self._column(end_line, node.end_col_offset or 0))

    def _column(self, line: int, offset: int) -> int:
        text = self.document.line(line)
        return offset + 1 if text.isascii() else len(text.encode()[:offset].decode(errors="ignore")) + 1

    def raw(self, place: Place) -> str:
        """The text at a place."""
        if place.line == place.end_line:
            return self.document.line(place.line)[place.column - 1 : place.end_column - 1]
        inner = [self.document.line(number) for number in range(place.line, place.end_line + 1)]
        inner[-1] = inner[-1][: place.end_column - 1]
        inner[0] = inner[0][place.column - 1 :]
        return "\n".join(inner)

    def source(self, node: ast.expr) -> str:
        """An expression's text as written."""
        return self.raw(self.place(node))

    def node(self, expression: ast.expr, depth: int = 0) -> Node | None:
        """An expression as a node of a config, or None where only a run decides it."""
        if depth > _DEPTH:
            return None
        match expression:
            case ast.Constant(value=value) if value is None or isinstance(value, bool | int | float | str):
                return self._scalar(expression, value, not isinstance(value, str))
            case ast.Name(id=name):
                bound = self.bound.get(name)
                return None if bound is None else self.node(bound, depth + 1)
            case ast.Attribute(value=ast.Name(id=owner), attr=attr) if attr in self.namespaces.get(owner, ()):
                return self.node(self.namespaces[owner][attr], depth + 1)
            case ast.Attribute():
                word = dtype(expression) or _member(expression)
                return None if word is None else self._scalar(expression, word)
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                nodes = [self.node(item, depth + 1) for item in items]
                known = tuple(node for node in nodes if node is not None)
                return Sequence(known, self.place(expression)) if len(known) == len(nodes) else None
            case ast.Dict(keys=keys, values=values):
                pairs = list(zip(keys, values, strict=True))
                return self._mapping(expression, ((self.node(k, depth + 1) if k else None, v) for k, v in pairs), depth)
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
                return self._mapping(
                    expression, ((self.keyword(k) if k.arg else None, k.value) for k in keywords), depth
                )
            case ast.UnaryOp() | ast.BinOp():
                number = self._number(expression, depth)
                return None if number is None else self._scalar(expression, number)
        return None

    def keyword(self, keyword: ast.keyword) -> Scalar:
        """The name of a keyword argument, at its place."""
        name = keyword.arg or ""
        start = self.place(keyword)
        place = Place(start.file, start.line, start.column, start.line, start.column + len(name))
        return Scalar(name, name, place)

    def _scalar(self, expression: ast.expr, value: object, bare: bool = True) -> Scalar:
        place = self.place(expression)
        return Scalar(value, self.raw(place), place, bare)

    def _mapping(
        self, expression: ast.expr, pairs: Iterable[tuple[Node | None, ast.expr]], depth: int
    ) -> Mapping | None:
        entries: list[Entry] = []
        for key, value in pairs:
            below = self.node(value, depth + 1)
            if not isinstance(key, Scalar) or below is None:
                return None
            entries.append(Entry(key, below))
        return Mapping(tuple(entries), self.place(expression))

    def _number(self, expression: ast.expr, depth: int) -> int | float | None:
        match expression:
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                inside = self.node(operand, depth + 1)
                value = _real(inside)
                return None if value is None else -value if isinstance(sign, ast.USub) else value
            case ast.BinOp(left=left, op=op, right=right):
                low, high = _real(self.node(left, depth + 1)), _real(self.node(right, depth + 1))
                if low is None or high is None:
                    return None
                if isinstance(op, ast.Pow):
                    return low**high if 0 <= high <= 64 and abs(low) <= 1024 else None
                act = _OPERATORS.get(type(op))
                try:
                    return act(low, high) if act is not None and abs(low) < _LIMIT and abs(high) < _LIMIT else None
                except ZeroDivisionError:
                    return None
        return None


def _real(node: Node | None) -> int | float | None:
    value = node.value if isinstance(node, Scalar) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def dtype(expression: ast.expr) -> str | None:
    """The word for a torch dtype written as `torch.bfloat16`, or None."""
    match expression:
        case ast.Attribute(value=ast.Name(id="torch"), attr=name):
            return DTYPES.get(name)
    return None


def _member(expression: ast.Attribute) -> str | None:
    owner = expression.value
    if isinstance(owner, ast.Attribute) and expression.attr == "value":
        return _member(owner)
    name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
    word = ENUMS.get(name)
    return word(expression.attr) if word is not None else None


def bound_once(nodes: Iterable[ast.AST]) -> dict[str, ast.expr]:
    """Names bound exactly once in the whole file, by a plain assignment outside loops and branches' alternatives."""
    counts: dict[str, int] = {}
    values: dict[str, ast.expr] = {}
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                counts[name] = counts.get(name, 0) + 1
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                for name in names:
                    counts[name] = counts.get(name, 0) + 2
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                values[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
                values[name] = value
            case ast.ClassDef(body=body):
                for below in body:  # a class's fields are no names of the file
                    if isinstance(below, ast.AnnAssign | ast.Assign):
                        target = below.target if isinstance(below, ast.AnnAssign) else below.targets[0]
                        if isinstance(target, ast.Name):
                            counts[target.id] = counts.get(target.id, 0) + 2
    return {name: value for name, value in values.items() if counts.get(name) == 1}
