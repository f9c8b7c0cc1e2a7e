"""Reading a mapping by its format's schema: which key goes to which path of the run.

A format's schema (`schemas/formats/<format>.schema.json`) marks keys with `x-trainlint`:

* `path`: where the value goes in the run; `unit`: what a bare number of this key counts (default: the path's unit);
* `map`: written word → the vocabulary's word; `role`: the key names a file or id (a Reference);
* `invert`: a flag that says the opposite; `scale`: factor to the path's unit.

Types are those of the framework's loader, with the leniency the loader has; a value of another type is left out.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from trainlint.documents import Mapping, Node, Scalar, Sequence, plain
from trainlint.formats.fragment import Fragment, Reference, say
from trainlint.run import Value, path_info

_FLOAT = re.compile(r"[+-]?(\d[\d_]*\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Key:
    """What the schema says of one key."""

    path: str = ""
    role: str = ""
    unit: str = ""
    words: tuple[tuple[str, object], ...] = ()
    invert: bool = False
    scale: float = 1.0


@lru_cache(maxsize=64)
def schema(name: str) -> dict[str, Any]:
    """The schema of a format, by file name without its ending."""
    text = files("trainlint_schemas").joinpath("formats", f"{name}.schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@lru_cache(maxsize=64)
def marked(name: str) -> dict[str, Key]:
    """The marked keys of a format's schema by dotted path, nested properties included."""
    found: dict[str, Key] = {}

    def collect(properties: dict[str, Any], prefix: str) -> None:
        for key, below in properties.items():
            mark = below.get("x-trainlint")
            if mark:
                found[prefix + key] = Key(
                    mark.get("path", ""),
                    mark.get("role", ""),
                    mark.get("unit", ""),
                    tuple(mark.get("map", {}).items()),
                    mark.get("invert", False),
                    mark.get("scale", 1.0),
                )
            if "properties" in below:
                collect(below["properties"], prefix + key + ".")

    collect(schema(name).get("properties", {}), "")
    return found


def read_marked(fragment: Fragment, name: str) -> None:
    """Fill the fragment's values and references from the keys that the schema marks."""
    keys = fragment.keys
    for dotted, key in marked(name).items():
        entry = keys.get(dotted)
        if entry is None:
            continue
        node = entry.value
        if (
            key.role
            and isinstance(node, Scalar)
            and isinstance(node.value, str)
            and node.value
            and "${" not in node.value
        ):
            fragment.references.append(Reference(key.role, node.value, node.place, dotted))  # type: ignore[arg-type]
        if key.path:
            value = convert(fragment.format, dotted, node, key)
            if value is not None:
                fragment.values[key.path] = value


def convert(format_name: str, dotted: str, node: Node, key: Key) -> Value[object] | None:
    """A node as a value of the key's path, or None where it says nothing or is of another type."""
    info = path_info(key.path)
    assert info is not None, f"{format_name}.{dotted}: no path {key.path}"
    unit = info.unit
    if info.kind == "texts":
        names = listed(node)
        return None if names is None else Value(names, "written", dotted, node.place, "", file_format=format_name)
    if info.kind == "anything":
        return Value(plain(node), "written", dotted, node.place, "", file_format=format_name)
    if not isinstance(node, Scalar):
        return None
    value = node.value
    if isinstance(value, str) and "${" in value:  # an interpolation that nothing in this file resolves
        return None
    for word, meaning in key.words:
        if value == word or (isinstance(value, bool | None.__class__ | int) and str(value).lower() == word):
            value = meaning
            return None if value is None else say(format_name, dotted, node, value, unit)
    if value is None:
        return None
    made: object = None
    match info.kind:
        case "flag":
            made = truth(value)
            made = (not made) if key.invert and made is not None else made
        case "text":
            made = value if isinstance(value, str) else None
            if made is not None and info.choices and made not in info.choices:
                made = None
        case "count":
            made = whole(value, key.scale)
        case "number":
            made = real(value)
            made = None if made is None else made * key.scale
    return None if made is None else say(format_name, dotted, node, made, unit)


def truth(value: object) -> bool | None:
    """A flag as loaders read it: booleans, and the words that HfArgumentParser takes."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(value.lower())
    if value in (0, 1):
        return bool(value)
    return None


def real(value: object) -> float | None:
    """A number, also where YAML 1.1 leaves it a string (`1e-5`)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str) and _FLOAT.fullmatch(value.strip()):
        return float(value.replace("_", ""))
    return None


def whole(value: object, scale: float = 1.0) -> int | None:
    """A whole number; `2e8` and `4.0` count, `0.5` does not."""
    number = real(value)
    if number is None or number != number or number in (float("inf"), float("-inf")):
        return None
    number *= scale
    return int(number) if number == int(number) else None


def listed(node: Node) -> tuple[str, ...] | None:
    """A list of names, also written as one name or with commas."""
    if isinstance(node, Sequence):
        return tuple(str(item.value) for item in node.items if isinstance(item, Scalar))
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value:
        return tuple(part.strip() for part in node.value.split(",") if part.strip())
    return None


def fragment_of(format_name: str, document: Any, root: Node | None, **rest: Any) -> Fragment:
    """A fragment read by the schema of the format's name."""
    fragment = Fragment(format_name, document, root if isinstance(root, Mapping) else None, **rest)
    read_marked(fragment, format_name)
    return fragment
