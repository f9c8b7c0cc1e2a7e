"""The small language of architecture files: sizes as sums and products of a config's numbers, and statements.

A size is a Python expression of names, numbers, `+ - * // %`, comparisons, `and or not`, `a if b else c` and tuples;
`rope_parameters.partial_rotary_factor` reads a nested key. A statement is `names = kind(arguments)`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import CodeType

from trainlint.memory.errors import ArchitectureFault

ALLOWED = (
    ast.Expression,
    ast.Constant,
    ast.Name,
    ast.Load,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.BoolOp,
    ast.IfExp,
    ast.Tuple,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.FloorDiv,
    ast.Div,
    ast.Mod,
    ast.USub,
    ast.Not,
    ast.And,
    ast.Or,
    ast.Eq,
    ast.NotEq,
    ast.Lt,
    ast.LtE,
    ast.Gt,
    ast.GtE,
    ast.In,
    ast.NotIn,
)


NO_BUILTINS: dict[str, object] = {"__builtins__": {}}


class Nested(ast.NodeTransformer):
    """`a.b` is the name `a.b` of the flattened config."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """One nested key."""
        inner = self.visit(node.value)
        if not isinstance(inner, ast.Name):
            raise ArchitectureFault(ast.unparse(node), "only names have parts")
        return ast.copy_location(ast.Name(id=f"{inner.id}__{node.attr}", ctx=ast.Load()), node)


class Expression:
    """A size, compiled once: `names` are what it needs; one that is a name alone is only looked up."""

    __slots__ = ("alone", "code", "constant", "names", "text")

    def __init__(self, tree: ast.expr, place: str) -> None:
        tree = Nested().visit(tree)
        self.text = ast.unparse(tree)
        names = []
        for part in ast.walk(tree):
            if not isinstance(part, ALLOWED):
                raise ArchitectureFault(place, f"`{self.text}` holds a {type(part).__name__}")
            if isinstance(part, ast.Name):
                names.append(part.id)
        self.names = tuple(names)
        self.constant = isinstance(tree, ast.Constant)
        self.alone = tree.id if isinstance(tree, ast.Name) else ""
        self.code: CodeType = compile(ast.Expression(body=tree), place, "eval")

    def value(self, names: Mapping[str, object]) -> object:
        """The number, given the values of all names."""
        return eval(self.code, NO_BUILTINS, names)


def expression(text: str, place: str) -> Expression:
    """Parse one expression."""
    try:
        return Expression(ast.parse(text.strip(), mode="eval").body, place)
    except SyntaxError as error:
        raise ArchitectureFault(place, f"`{text}` is no expression") from error


class Statement:
    """`names = kind(arguments, keyword=argument)`; an argument is the name of a value or a size."""

    __slots__ = ("arguments", "keywords", "kind", "names", "place")

    def __init__(self, tree: ast.stmt, place: str) -> None:
        self.place = f"{place}: `{ast.unparse(tree)}`"
        names: tuple[str, ...] = ()
        call: ast.expr | None = None
        if isinstance(tree, ast.Assign) and len(tree.targets) == 1:
            target = tree.targets[0]
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            names = tuple(part.id for part in parts if isinstance(part, ast.Name))
            call = tree.value
        elif isinstance(tree, ast.Expr):
            call = tree.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ArchitectureFault(self.place, "is no `names = kind(arguments)`")
        self.names = names
        self.kind = call.func.id
        self.arguments = [Expression(argument, self.place) for argument in call.args]
        self.keywords = [(key.arg or "", Expression(key.value, self.place)) for key in call.keywords]

    def inputs(self) -> list[str]:
        """Names that stand alone as an argument: values, or sizes of one name."""
        every = [*self.arguments, *(value for _, value in self.keywords)]
        return [part.names[0] for part in every if len(part.names) == 1 and part.text == part.names[0]]


def statements(text: str, place: str) -> list[Statement]:
    """Parse a block of statements, one a line."""
    try:
        return [Statement(tree, place) for tree in ast.parse(text).body]
    except SyntaxError as error:
        raise ArchitectureFault(f"{place}, line {error.lineno}", "does not parse") from error
