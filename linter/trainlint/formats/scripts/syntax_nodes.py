"""All nodes of a syntax tree at once, and which lines hold something: scripts are long, what says something is rare."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache

_EMPTY = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)


@lru_cache(maxsize=2)
def nodes(module: ast.Module) -> tuple[ast.AST, ...]:
    """The nodes of a module, outer ones before inner ones; those without a content of their own are left out."""
    found: list[ast.AST] = [module]
    for node in found:
        for value in node.__dict__.values():
            if isinstance(value, list):
                found += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, _EMPTY):
                found.append(value)
    return tuple(found)


def called(call: ast.Call) -> str:
    """The last part of the name that is called; empty where it has none."""
    func = call.func
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def holds(lines: Sequence[int], node: ast.stmt | ast.expr) -> bool:
    """Whether one of some lines, in order, is among a node's."""
    at = bisect_left(lines, node.lineno)
    return at < len(lines) and lines[at] <= (node.end_lineno or node.lineno)
