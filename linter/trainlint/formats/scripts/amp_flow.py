"""From a script's syntax tree to the order of its mixed-precision and optimizer calls (`amp`)."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import replace

from trainlint.documents import Scalar
from trainlint.formats.scripts.amp import Amp, Event, EventKind, Loop, Scope
from trainlint.formats.scripts.amp_names import Names, origin, top_calls
from trainlint.formats.scripts.calls import Script, dotted, guards, leaves
from trainlint.formats.scripts.syntax_nodes import called, holds, nodes

_HINT = re.compile(r"backward|GradScaler|autocast|zero_grad|clip_grad|unscale_")
_FOLLOW = 3
"""How deep calls of own functions are followed."""
_BUDGET = 500
"""How often at most."""
_EVENTS = frozenset(
    (
        "GradScaler", "ShardedGradScaler", "autocast", "backward", "manual_backward", "unscale_", "unscale_gradients",
        "step", "update", "zero_grad",
    )
)  # fmt: skip
_CLIPS = frozenset(("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_gradients"))
_SELF_SCALING = ("accelerator", "fabric")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def flow(script: Script) -> Amp:
    """The events of every function and of the module itself."""
    document = script.literals.document
    module = document.module
    if module is None or not _HINT.search(document.text):
        return Amp()
    reader = _Reader(script, Names.of(script, module))
    return Amp(tuple(scope for scope in reader.scopes(module) if scope.body))


class _Reader:
    """Walks scopes; a scope's events are collected with the conditions, contexts and loops they stand in."""

    def __init__(self, script: Script, names: Names) -> None:
        self.script, self.names, self.literals = script, names, script.literals
        self.functions: dict[str, Function] = {}
        self.conditions: list[str] = []
        self.inside: list[str] = []
        self.via: list[str] = []
        self.owner = ""
        self.budget = _BUDGET
        self.lines: list[int] = []

    def scopes(self, module: ast.Module) -> Iterator[Scope]:
        found = list(_functions(module.body, ""))
        calls = sorted((node.lineno, called(node)) for node in nodes(module) if isinstance(node, ast.Call))
        self.functions, shorts = _telling({name: function for name, function, _ in found}, calls)
        self.lines = [line for line, short in calls if short in shorts]
        start = self.literals.document.file
        place = self.literals.place(module.body[0]) if module.body else None
        if place is not None:
            yield Scope("", place._replace(file=start), tuple(self.block(module.body)))
        for name, function, bases in found:
            if name not in self.functions:
                continue
            self.owner = name.rpartition(".")[0]
            events = [
                event for decorator in function.decorator_list for event in self.calls(decorator) if _autocasts(event)
            ]
            entered = [*self.inside, *("autocast" for _ in events)]
            kept, self.inside = self.inside, entered
            yield Scope(name, self.literals.place(function), (*events, *self.block(function.body)), bases)
            self.inside = kept

    def block(self, body: list[ast.stmt]) -> list[Event | Loop]:
        found: list[Event | Loop] = []
        kept = len(self.conditions)
        for statement in body:
            found += self.statement(statement)
            if isinstance(statement, ast.If) and guards(statement.test) and leaves(statement.body):
                self.conditions.append(f"not ({self.literals.source(statement.test)})")
        del self.conditions[kept:]
        return found

    def under(self, condition: str, body: list[ast.stmt]) -> list[Event | Loop]:
        self.conditions.append(condition)
        found = self.block(body)
        self.conditions.pop()
        return found

    def statement(self, node: ast.stmt) -> list[Event | Loop]:
        if not holds(self.lines, node):
            return []
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return []
            case ast.If(test=test, body=body, orelse=orelse):
                if not guards(test):
                    dead = isinstance(test, ast.Constant) and not test.value
                    return self.block(orelse if dead else body)
                text = self.literals.source(test)
                return [*self.calls(test), *self.under(text, body), *self.under(f"not ({text})", orelse)]
            case ast.For(iter=over, body=body) | ast.AsyncFor(iter=over, body=body) | ast.While(test=over, body=body):
                conditional = bool(self.conditions)
                kept, self.conditions = self.conditions, []
                inner = tuple(self.block(body))
                self.conditions = kept
                loop = (
                    [Loop(self.literals.place(node), self.literals.source(over), inner, conditional)] if inner else []
                )
                return [*self.calls(over), *loop, *self.block(node.orelse)]
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                kept_inside = len(self.inside)
                found: list[Event | Loop] = []
                for item in items:
                    found += self.entered(item.context_expr)
                found += self.block(body)
                del self.inside[kept_inside:]
                return found
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=finalbody):
                tried = self.block(body)
                caught = [event for handler in handlers for event in self.under("an exception", handler.body)]
                return [*tried, *caught, *self.block(orelse), *self.block(finalbody)]
            case ast.Match(subject=subject, cases=cases):
                text = self.literals.source(subject)
                return [event for case in cases for event in self.under(text, case.body)]
        return [
            event for below in ast.iter_child_nodes(node) if isinstance(below, ast.expr) for event in self.calls(below)
        ]

    def entered(self, context: ast.expr) -> list[Event | Loop]:
        """What entering a context does, and its name for what is inside."""
        found = self.calls(context)
        if (call := self.names.contexts.get(dotted(context))) is not None:
            found = [event for event in self.calls(call) if _autocasts(event)]
        calls = [origin(call.func, self.script).rpartition(".")[2] for call in top_calls(context)]
        if any(_autocasts(event) for event in found) or dotted(context) in self.names.contexts:
            self.inside.append("autocast")
        self.inside += (short for short in calls if short in ("accumulate", "no_sync", "no_backward_sync"))
        return list(found)

    def calls(self, expression: ast.expr) -> list[Event | Loop]:
        found: list[Event | Loop] = []
        if isinstance(expression, ast.Lambda):
            return found
        for name, below in ast.iter_fields(expression):
            decided = isinstance(expression, ast.IfExp) and name in ("body", "orelse")
            if decided and isinstance(expression, ast.IfExp):
                self.conditions.append(self.literals.source(expression.test))
            for item in below if isinstance(below, list) else [below]:
                inner = item.value if isinstance(item, ast.keyword) else item
                if isinstance(inner, ast.expr):
                    found += self.calls(inner)
            if decided:
                self.conditions.pop()
        if isinstance(expression, ast.Call):
            event = self.event(expression)
            found += [event] if event is not None else self.followed(expression)
        return found

    def followed(self, call: ast.Call) -> list[Event | Loop]:
        """The events of the file's own function, where it is called."""
        name = dotted(call.func)
        if name.startswith("self."):
            name = f"{self.owner}.{name[5:]}"
        function = self.functions.get(name)
        if function is None or name in self.via or len(self.via) >= _FOLLOW or self.budget <= 0:
            return []
        self.budget -= 1
        self.via.append(name)
        found = self.block(function.body)
        self.via.pop()
        return found

    def event(self, call: ast.Call) -> Event | None:
        name = origin(call.func, self.script)
        owner, _, short = name.rpartition(".")
        subject = self.literals.source(call.args[0]) if call.args else ""
        plain = owner.rpartition(".")[2].lower()
        match short:
            case "GradScaler" | "ShardedGradScaler":
                return self.made("scaler", call, self.names.built.get(id(call), ""), "", name)
            case "autocast":
                return self.made("autocast", call, owner if plain in _SELF_SCALING else "", "", name)
            case "backward":
                return self.backward(call, owner, subject, plain)
            case "manual_backward":
                return self.made("manual-backward", call, owner, subject)
            case "unscale_" | "unscale_gradients":
                return self.made("unscale", call, owner, subject)
            case "step" if self.names.is_scaler(owner):
                return self.made("scaler-step", call, owner, subject)
            case "step" if self.names.is_optimizer(owner):
                return self.made("step", call, owner)
            case "update" if self.names.is_scaler(owner):
                return self.made("scaler-update", call, owner)
            case "zero_grad":
                return self.made("zero-grad", call, owner)
            case _ if short in _CLIPS:
                known = next((word for word in (*_SELF_SCALING, "engine") if word in plain), "")
                return self.made("clip", call, known or owner, subject, name)
        return None

    def backward(self, call: ast.Call, owner: str, subject: str, plain: str) -> Event:
        func = call.func
        inner = func.value if isinstance(func, ast.Attribute) else None
        loss = dotted(inner) if inner is not None else ""
        if isinstance(inner, ast.Call) and dotted(inner.func).endswith(".scale"):
            scaled = inner.args[0] if inner.args else None
            text = self.literals.source(scaled) if scaled is not None else ""
            scaler = dotted(inner.func).rpartition(".")[0]
            return self.made("scaled-backward", call, scaler, text, divided=self.divided(scaled))
        if loss in self.names.scaled:
            return self.made("scaled-backward", call, self.names.scaled[loss], loss)
        if call.args and "accelerator" in plain:
            return self.made("accelerator-backward", call, owner, subject, divided=self.divided(call.args[0]))
        if call.args and "fabric" in plain:
            return self.made("manual-backward", call, owner, subject, divided=self.divided(call.args[0]))
        if call.args and not plain.endswith("loss"):
            return self.made("engine-backward", call, owner, subject, divided=self.divided(call.args[0]))
        text = self.literals.source(inner) if inner is not None else ""
        return self.made("backward", call, "", text, divided=self.divided(inner))

    def divided(self, loss: ast.expr | None) -> bool | None:
        match loss:
            case ast.BinOp(op=ast.Div()):
                return True
            case ast.BinOp(op=ast.Mult(), right=ast.BinOp(op=ast.Div())):
                return True
            case ast.Name() | ast.Attribute():
                return self.names.divided.get(dotted(loss))
        return None

    def made(
        self, kind: EventKind, call: ast.Call, owner: str, subject: str = "", api: str = "", divided: bool | None = None
    ) -> Event:
        event = Event(
            kind,
            self.literals.place(call),
            owner,
            subject,
            api,
            divided=divided,
            conditional=bool(self.conditions),
            condition=" and ".join(self.conditions),
            inside=tuple(self.inside),
            via=".".join(self.via[:1]),
        )
        return self.precision(event, call) if kind in ("autocast", "scaler") else event

    def precision(self, event: Event, call: ast.Call) -> Event:
        """dtype, device and `enabled` of an autocast or a scaler."""
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        if event.kind == "autocast" and event.owner:  # accelerate and Fabric decide themselves
            return replace(event, enabled=None)
        bare = "cuda.amp" in event.api or "cpu.amp" in event.api
        order: tuple[str, ...] = (
            ("enabled", "dtype") if bare and event.kind == "autocast" else ("device_type", "dtype", "enabled")
        )
        if event.kind == "scaler":
            order = ("init_scale",) if bare else ("device", "init_scale")
        given |= {name: value for name, value in zip(order, call.args, strict=False) if name not in given}
        known = {name: self._literal(value) for name, value in given.items() if name}
        device = known.get("device_type", known.get("device"))
        if bare:
            device = "cpu" if "cpu.amp" in event.api else "cuda"
        elif event.kind == "scaler" and "device" not in given:
            device = "cuda"
        dtype = known.get("dtype")
        if event.kind == "autocast" and "dtype" not in given and isinstance(device, str):
            dtype = {"cuda": "float16", "cpu": "bfloat16"}.get(device.partition(":")[0])
        enabled = known.get("enabled") if "enabled" in given else True
        return replace(
            event,
            dtype=dtype if isinstance(dtype, str) else None,
            device=device if isinstance(device, str) else None,
            enabled=enabled if isinstance(enabled, bool) and None not in given else None,
        )

    def _literal(self, expression: ast.expr) -> object:
        node = self.literals.node(expression)
        return node.value if isinstance(node, Scalar) else None


def _telling(
    functions: dict[str, Function], calls: list[tuple[int, str]]
) -> tuple[dict[str, Function], frozenset[str]]:
    """The functions in which something happens, be it in one that they call, and the names whose calls matter."""
    lines = [line for line, _ in calls]
    named: dict[str, set[str]] = {}
    for name, function in functions.items():
        start, end = bisect_left(lines, function.lineno), bisect_right(lines, function.end_lineno or 0)
        named[name] = {short for _, short in calls[start:end]}
    shorts = _EVENTS | _CLIPS
    for _ in range(_FOLLOW):
        shorts |= {name.rpartition(".")[2] for name, names in named.items() if names & shorts}
    return {name: function for name, function in functions.items() if named[name] & shorts}, shorts


def _autocasts(event: Event | Loop) -> bool:
    return isinstance(event, Event) and event.kind == "autocast"


def _functions(
    body: list[ast.stmt], prefix: str, bases: tuple[str, ...] = ()
) -> Iterator[tuple[str, Function, tuple[str, ...]]]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield prefix + node.name, node, bases
                yield from _functions(node.body, prefix + node.name + ".")
            case ast.ClassDef(name=name, body=below):
                yield from _functions(below, prefix + name + ".", tuple(dotted(base) for base in node.bases))
            case ast.If(body=below, orelse=orelse):
                yield from _functions([*below, *orelse], prefix, bases)
            case ast.With(body=below) | ast.Try(body=below):
                yield from _functions(below, prefix, bases)
