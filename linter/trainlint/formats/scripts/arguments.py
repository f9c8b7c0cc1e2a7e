"""What a script's own arguments are by default: `args.batch_size`, where argparse or a dataclass of the file says it.

An argument without a default, one that must be given, and one that the script sets again are not followed. A switch
(`store_true`) is followed only where a launcher shows whether it is given: `switches` holds those.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trainlint.formats.scripts.syntax_nodes import called

Fields = Mapping[str, ast.expr]
"""Names of arguments → the expressions of their defaults."""
HINT = re.compile(r"add_argument\(|@dataclass|@dataclasses\.dataclass")
PARSED = frozenset(("parse_args_into_dataclasses", "parse_args_and_config", "parse_yaml_file", "parse_json_file"))
_ATTRIBUTE = re.compile(r"\b([A-Za-z_]\w*)\.([A-Za-z_]\w*)\b")


@dataclass(frozen=True, slots=True)
class Arguments:
    """`namespaces`: variable → its arguments with their defaults; `switches`: variable → its switches with theirs.

    `classes`: the fields of the file's own dataclasses with defaults, those of their bases in the file among them;
    `parsed`: classes that a parser fills.
    """

    namespaces: Mapping[str, Fields] = field(default_factory=dict)
    switches: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    classes: Mapping[str, Fields] = field(default_factory=dict)
    parsed: tuple[str, ...] = ()

    def named(self, source: str) -> tuple[str, ...]:
        """The arguments that the text of an expression asks for."""
        return tuple(
            attr
            for owner, attr in _ATTRIBUTE.findall(source)
            if attr in self.namespaces.get(owner, ()) or attr in self.switches.get(owner, ())
        )

    def switch(self, source: str) -> bool | None:
        """The default of the switch that an expression is, or None."""
        owner, _, attr = source.partition(".")
        return self.switches.get(owner, {}).get(attr)


def arguments(nodes: Sequence[ast.AST], text: str) -> Arguments:
    """The arguments of a script by the variables that hold them."""
    if not HINT.search(text):
        return Arguments()
    classes = _classes(nodes)
    options, switches = _options(nodes)
    again = {
        (node.value.id, node.attr)
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)
    }
    loose = {
        node.args[0].id
        for node in nodes
        if isinstance(node, ast.Call) and called(node) == "setattr" and node.args and isinstance(node.args[0], ast.Name)
    }
    namespaces: dict[str, Fields] = {}
    switched: dict[str, Mapping[str, bool]] = {}
    bound, parsed = _holders(nodes, classes)
    for name, holder in bound.items():
        if name in loose or holder is None:
            continue
        fields = options if holder == "" else classes[holder]
        namespaces[name] = {key: value for key, value in fields.items() if (name, key) not in again}
        if holder == "":
            switched[name] = {key: value for key, value in switches.items() if (name, key) not in again}
    return Arguments(namespaces, switched, classes, parsed)


def _classes(nodes: Sequence[ast.AST]) -> dict[str, Fields]:
    found: dict[str, tuple[list[str], dict[str, ast.expr]]] = {}
    for node in nodes:
        if isinstance(node, ast.ClassDef) and any(_name(one) == "dataclass" for one in node.decorator_list):
            own: dict[str, ast.expr] = {}
            for below in node.body:
                if isinstance(below, ast.AnnAssign) and isinstance(below.target, ast.Name) and below.value is not None:
                    value = _default(below.value)
                    if value is not None:
                        own[below.target.id] = value
            found[node.name] = ([_name(base) for base in node.bases], own)
    return {name: _inherited(name, found, frozenset()) for name in found}


def _inherited(
    name: str, found: Mapping[str, tuple[list[str], dict[str, ast.expr]]], seen: frozenset[str]
) -> dict[str, ast.expr]:
    if name in seen or name not in found:
        return {}
    bases, own = found[name]
    merged: dict[str, ast.expr] = {}
    for base in reversed(bases):
        merged.update(_inherited(base, found, seen | {name}))
    return {**merged, **own}


def _default(value: ast.expr) -> ast.expr | None:
    """The default that a field is given: itself, `field(default=…)`, or what a `default_factory=lambda: …` makes."""
    if not (isinstance(value, ast.Call) and called(value) in ("field", "Field")):
        return value
    for keyword in value.keywords:
        if keyword.arg == "default":
            return keyword.value
        if keyword.arg == "default_factory" and isinstance(keyword.value, ast.Lambda):
            return keyword.value.body
    return None


def _options(nodes: Sequence[ast.AST]) -> tuple[dict[str, ast.expr], dict[str, bool]]:
    """The defaults of `add_argument`, and those of switches; none of a name that is added twice."""
    defaults: dict[str, ast.expr] = {}
    switches: dict[str, bool] = {}
    times: Counter[str] = Counter()
    for node in nodes:
        if not (isinstance(node, ast.Call) and called(node) == "add_argument"):
            continue
        texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        dest = given.get("dest")
        long = next((text for text in texts if text.startswith("--")), texts[0] if texts else "")
        name = dest.value if isinstance(dest, ast.Constant) else long.lstrip("-").replace("-", "_")
        times[str(name)] += 1
        action, default = given.get("action"), given.get("default")
        word = action.value if isinstance(action, ast.Constant) else None
        if word in ("store_true", "store_false") and default is None:
            switches[str(name)] = word == "store_false"
        elif default is not None and not (isinstance(default, ast.Constant) and default.value is None):
            defaults[str(name)] = default
    once = {name for name, count in times.items() if count == 1}
    return {k: v for k, v in defaults.items() if k in once}, {k: v for k, v in switches.items() if k in once}


def _holders(nodes: Sequence[ast.AST], classes: Mapping[str, Fields]) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """Variable → the dataclass it holds, "" for argparse's namespace, None where it is bound to anything else."""
    makers = {"parse_args", "parse_known_args"} | {
        node.name
        for node in nodes
        if isinstance(node, ast.FunctionDef)
        and any(
            isinstance(one, ast.Call) and called(one) in ("parse_args", "parse_known_args") for one in ast.walk(node)
        )
        and any(isinstance(one, ast.Return) and one.value is not None for one in ast.walk(node))
    }
    parsers: dict[str, list[str]] = {}
    bound: dict[str, str | None] = {}
    others: set[str] = set()
    parsed: list[str] = []

    def bind(name: str, holder: str | None) -> None:
        bound[name] = holder if bound.setdefault(name, holder) == holder else None

    for node in nodes:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], node.value
        at: int | None = None
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
            at, value = value.slice.value if isinstance(value.slice.value, int) else None, value.value
        names = _targets(target)
        call = called(value) if isinstance(value, ast.Call) else ""
        if isinstance(value, ast.Call) and call in ("HfArgumentParser", "TrlParser") and value.args:
            parsers[names[0]] = _listed(value.args[0])
        elif call in PARSED and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            made = parsers.get(_name(value.func.value), [])
            parsed += made
            pairs = zip(names, made, strict=False) if at is None else zip(names, made[at : at + 1], strict=False)
            for name, kind in pairs:
                bind(name, kind if kind in classes else None)
        elif call in makers or (call == "cli" and isinstance(value, ast.Call)) or call in classes:
            assert isinstance(value, ast.Call)
            kind = call if call in classes else _name(value.args[0]) if call == "cli" and value.args else ""
            holder = kind if not kind or (kind in classes and not (call in classes and value.args)) else None
            known = holder is not None and not (call in classes and value.keywords)
            bind(names[0], holder if known else None)
        else:
            others.update(names)
    bound.update(dict.fromkeys(others & bound.keys(), None))
    return bound, tuple(dict.fromkeys(parsed))


def _targets(target: ast.expr) -> list[str]:
    items: Iterable[ast.expr] = target.elts if isinstance(target, ast.Tuple | ast.List) else (target,)
    return [_name(item) for item in items] or [""]


def _listed(node: ast.expr) -> list[str]:
    return [_name(item) for item in (node.elts if isinstance(node, ast.Tuple | ast.List) else (node,))]


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=func):
            return _name(func)
    return ""
