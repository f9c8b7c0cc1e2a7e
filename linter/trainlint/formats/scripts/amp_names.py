"""What the names of a training script hold: gradient scalers, optimizers, scaled and divided losses, contexts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from trainlint.formats.scripts.calls import Script, dotted
from trainlint.formats.scripts.syntax_nodes import nodes
from trainlint.formats.scripts.training_names import OPTIMIZERS


@dataclass(slots=True)
class Names:
    """Names by what is assigned to them. `scaled` gives a loss's scaler, `divided` whether a name was ever divided,
    `built` the name of a scaler by the identity of the call that makes it."""

    scalers: set[str] = field(default_factory=set)
    optimizers: set[str] = field(default_factory=set)
    scaled: dict[str, str] = field(default_factory=dict)
    contexts: dict[str, ast.Call] = field(default_factory=dict)
    divided: dict[str, bool] = field(default_factory=dict)
    built: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, script: Script, module: ast.Module) -> Names:
        """The names of a whole file."""
        names = cls()
        for node in nodes(module):
            match node:
                case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=value):
                    name = dotted(target)
                    for call in top_calls(value):
                        short = origin(call.func, script).rpartition(".")[2]
                        if short in ("GradScaler", "ShardedGradScaler"):
                            names.scalers.add(name)
                            names.built[id(call)] = name
                        elif short in OPTIMIZERS:
                            names.optimizers.add(name)
                        elif short == "autocast":
                            names.contexts[name] = call
                        elif short == "scale" and dotted(call.func).rpartition(".")[0] in names.scalers:
                            names.scaled[name] = dotted(call.func).rpartition(".")[0]
                    if isinstance(value, ast.BinOp | ast.Call | ast.IfExp):
                        divided = any(
                            isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div) for part in ast.walk(value)
                        )
                        names.divided[name] = divided or names.divided.get(name, False)
                    elif value is not None:
                        names.divided.setdefault(name, False)
                case ast.AugAssign(target=target, op=ast.Div()):
                    names.divided[dotted(target)] = True
                case ast.withitem(context_expr=ast.Call() as call, optional_vars=ast.Name(id=name)):
                    if dotted(call.func).endswith("amp.scale_loss"):
                        names.scaled[name] = "apex"
        return names

    def is_scaler(self, name: str) -> bool:
        """Whether a name holds a gradient scaler, by assignment or by its wording."""
        return name in self.scalers or "scaler" in name.lower()

    def is_optimizer(self, name: str) -> bool:
        """Whether a name holds an optimizer, by assignment or by its wording."""
        low = name.rpartition(".")[2].lower().rstrip("[]()")
        return name in self.optimizers or (("opt" in low) and "option" not in low)


def origin(expression: ast.expr, script: Script) -> str:
    """A dotted name through the file's imports."""
    text = dotted(expression)
    head, dot, tail = text.partition(".")
    return script.imports.get(head, head) + dot + tail


def top_calls(node: ast.AST | None) -> Iterator[ast.Call]:
    """The calls whose results an expression may be: itself, or the arms of a condition."""
    match node:
        case ast.Call():
            yield node
        case ast.IfExp(body=body, orelse=orelse):
            yield from top_calls(body)
            yield from top_calls(orelse)
