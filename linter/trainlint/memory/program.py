"""An architecture's statements, resolved once: which function, which arguments are values, what dies after each line.

A name dies after its last use, as if the module's code had said `del`; `keep(names)` counts as a use and `drop(names)`
as the last one, where the library's Python holds a local longer or lets go of it earlier than its last use suggests.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from types import CodeType

from trainlint.memory.architecture import Architecture, Head, Stack
from trainlint.memory.errors import ArchitectureFault
from trainlint.memory.expressions import NO_BUILTINS, Expression, Statement, expression
from trainlint.memory.kinds import KINDS, Kind

LIFETIMES = ("keep", "drop")

Environment = dict[str | int, object]
"""What statements run on: values by name, sizes by number."""
Step = tuple[tuple[str, ...], Kind | None, tuple[str | int, ...], tuple[str, ...], str]
"""Names, function, arguments (a value's name, or a size's number), names that die after it, its label."""

LABELS = {
    "rmsnorm": "norms",
    "layernorm": "norms",
    "attention": "attention",
    "linear": "linear layers",
    "activation": "activation functions",
    "gated_linear": "linear layers",
    "mul": "activation functions",
    "dropout": "dropout masks",
    "rope": "rotary positions",
    "rope_cat": "rotary positions",
    "rotary": "rotary positions",
    "embedding": "embeddings",
    "causal_mask": "attention masks",
    "bidirectional_mask": "attention masks",
    "experts": "experts",
    "bloom_attention": "attention",
    "mpt_attention": "attention",
    "disentangled_attention": "attention",
    "latent_keys": "attention",
    "complex_rope": "rotary positions",
    "head": "logits",
    "causal_loss": "logits",
    "plain_loss": "logits",
    "class_loss": "logits",
    "relative_bias": "attention masks",
}
"""What the ledger calls the tensors that a kind makes; others are "residual stream"."""


class Program:
    """One list of statements, ready to run."""

    __slots__ = ("code", "steps")

    def __init__(
        self, lines: list[Statement], given: Iterable[str], results: Iterable[str], sizes: Iterable[str]
    ) -> None:
        values = set(given)
        results = set(results)
        numbers = set(sizes)
        expressions: list[Expression] = []
        last: dict[str, int] = {}
        resolved = []
        for index, line in enumerate(lines):
            kind = KINDS.get(line.kind)
            if kind is None and line.kind not in LIFETIMES:
                raise ArchitectureFault(line.place, f"no kind `{line.kind}`")
            arguments: list[str | int] = []
            for part in _positional(line, kind):
                found: str | int
                if part.text in values:
                    found = part.text
                    last[found] = index
                else:
                    unknown = [name for name in part.names if name not in numbers]
                    if unknown:
                        raise ArchitectureFault(line.place, f"`{unknown[0]}` is neither a value nor a size")
                    found = len(expressions)
                    expressions.append(part)
                arguments.append(found)
            for name in line.names:
                values.add(name)
                last[name] = index
            resolved.append((line.names, kind, tuple(arguments), LABELS.get(line.kind, "residual stream")))
        self.steps: list[Step] = []
        for index, (names, kind, positional, label) in enumerate(resolved):
            dead = tuple(name for name, at in last.items() if at == index and name not in results)
            self.steps.append((names, kind, positional, dead, label))
        elements = [ast.parse(part.text, mode="eval").body for part in expressions]
        tree = ast.Expression(body=ast.Tuple(elts=elements, ctx=ast.Load()))
        self.code = compile(ast.fix_missing_locations(tree), "sizes", "eval")

    def sizes(self, names: dict[str, object]) -> Environment:
        """All sizes that the statements name, by number."""
        return dict(enumerate(eval(self.code, NO_BUILTINS, names)))


def _positional(line: Statement, kind: Kind | None) -> list[Expression]:
    """A statement's arguments in the order of its function's parameters, with defaults where it leaves one out."""
    out = list(line.arguments)
    left = dict(line.keywords)
    if not left or kind is None:
        return out + list(left.values())
    code: CodeType = kind.__code__
    names = code.co_varnames[1 : code.co_argcount]  # behind the walk
    defaults = dict(zip(reversed(names), reversed(kind.__defaults__ or ()), strict=False))
    for name in names[len(out) :]:
        if not left:
            break
        if name not in left and name not in defaults:
            raise ArchitectureFault(line.place, f"no `{name}`")
        out.append(left.pop(name) if name in left else expression(repr(defaults[name]), line.place))
    if left:
        raise ArchitectureFault(line.place, f"`{line.kind}` knows no `{next(iter(left))}`")
    return out


def used(lines: list[Statement]) -> set[str]:
    """Names that statements take as arguments."""
    return {name for line in lines for name in line.inputs()}


class StackProgram:
    """The programs of one stack; `shared` names are seen by all, `bodies` are the usual block and its variants."""

    __slots__ = ("bodies", "embed", "final", "shared", "stack")

    def __init__(self, stack: Stack, given: set[str], later: set[str], sizes: Iterable[str]) -> None:
        self.stack = stack
        needed = used(stack.final) | later
        for body in stack.bodies():
            needed |= used(body)
        for renames in stack.types.values():
            needed |= set(renames.values())
        made = {name for line in stack.embed for name in line.names}
        self.embed = Program(stack.embed, given, needed | {"x", *stack.hold}, sizes)
        absent = [name for name in stack.hold if name not in made]
        if absent:
            raise ArchitectureFault(stack.name, f"holds `{absent[0]}`, which its embed does not make")
        self.shared = ((given | made) & needed) - {"x"}
        self.bodies = [Program(body, {"x", *self.shared}, {"x", *self.shared}, sizes) for body in stack.bodies()]
        self.final = Program(stack.final, {"x", *self.shared}, {"x", *self.shared}, sizes)


class ModelProgram:
    """Everything that one architecture under one head runs."""

    __slots__ = ("head", "head_inputs", "head_kind", "stacks")

    def __init__(self, architecture: Architecture, head: Head) -> None:
        sizes = {*architecture.dims, *head.dims, "batch", "tokens", "length", "seq", "layer"}
        self.stacks: list[StackProgram] = []
        given: set[str] = set()
        for index, stack in enumerate(architecture.stacks):
            later = used(head.ops)
            for following in architecture.stacks[index + 1 :]:
                later |= used(following.embed)
                for body in following.bodies():
                    later |= used(body)
            program = StackProgram(stack, given, later, sizes)
            self.stacks.append(program)
            given = {*program.shared, "enc"}
        self.head_kind = head.kind
        self.head_inputs = used(head.ops) & given
        self.head = Program(head.ops, {"x", *self.head_inputs}, {"loss"}, sizes)


_programs: dict[tuple[str, str], ModelProgram] = {}


def program(architecture: Architecture, head: Head) -> ModelProgram:
    """The program of an architecture under a head, made once."""
    key = architecture.name, head.kind
    found = _programs.get(key)
    if found is None:
        found = _programs[key] = ModelProgram(architecture, head)
    return found
