"""OmegaConf's `${key}`: what a value stands for when it names another value of the same file."""

from __future__ import annotations

import re

from trainlint.documents import Entry, Mapping, Node, Scalar, Sequence

_NAME = re.compile(r"\$\{\s*([A-Za-z_][\w.-]*)\s*\}")
_DEPTH = 8


def resolved(root: Mapping) -> Mapping:
    """The same tree with every `${key}` replaced by the value it names; places and raw texts stay.

    Keys are absolute, as OmegaConf reads them. What names nothing in this file, a resolver (`${oc.env:HOME}`) or
    itself stays as written.
    """
    return Mapping(tuple(_entry(entry, root) for entry in root.entries), root.place)


def _entry(entry: Entry, root: Mapping) -> Entry:
    return Entry(entry.key, _node(entry.value, root), entry.merged)


def _node(node: Node, root: Mapping) -> Node:
    match node:
        case Mapping():
            return Mapping(tuple(_entry(entry, root) for entry in node.entries), node.place)
        case Sequence():
            return Sequence(tuple(_node(item, root) for item in node.items), node.place)
        case Scalar(value=str(text)) if "${" in text:
            return Scalar(_value(text, root, _DEPTH), node.raw, node.place, node.plain)
    return node


def _value(text: str, root: Mapping, depth: int) -> object:
    whole = _NAME.fullmatch(text.strip())
    if whole is not None:
        named = _named(whole[1], root, depth)
        return text if named is _UNKNOWN else named
    parts = {found[0]: _named(found[1], root, depth) for found in _NAME.finditer(text)}
    for written, named in parts.items():
        if named is not _UNKNOWN:
            text = text.replace(written, str(named))
    return text


_UNKNOWN = object()


def _named(name: str, root: Mapping, depth: int) -> object:
    node = root.find(name)
    if not isinstance(node, Scalar) or depth == 0:
        return _UNKNOWN
    if isinstance(node.value, str) and "${" in node.value:
        value = _value(node.value, root, depth - 1)
        return _UNKNOWN if isinstance(value, str) and "${" in value else value
    return node.value
