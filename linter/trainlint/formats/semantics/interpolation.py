"""OmegaConf's `${…}`: what a value stands for when it names another value of the same config.

Read: `${a.b}`, `${.sibling}`, `${..above}`, `${oc.select:a.b,default}` and `${oc.env:NAME,default}` (the default: what
holds where nothing is set). A mandatory value that is missing (`???`) is None. Everything else stays as written, so
that nobody takes it for a value: other resolvers, names that are nowhere, circles.
"""

from __future__ import annotations

import re
from collections.abc import Sequence as Names

from trainlint.documents import Entry, Mapping, Node, Scalar, Sequence

MISSING = "???"
_NAME = r"\$\{\s*(\.*[A-Za-z_][\w.-]*)\s*\}"
_RESOLVER = r"\$\{\s*oc\.(env|select)\s*:\s*([\w.-]+)\s*(?:,\s*([^{}]*?)\s*)?\}"
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None, "": None}
_DEPTH = 8
_UNKNOWN = object()

Path = tuple[str, ...]
"""Keys from the root to the mapping that a value stands in."""


def resolved(root: Mapping, packages: Names[str] = ()) -> Mapping:
    """The same tree with every `${…}` that can be read replaced by what it names; places and raw texts stay.

    Keys are absolute, as OmegaConf reads them. `packages`: names under which a launcher may put the whole file, so that
    `${training.model.x}` is the file's own `model.x`.
    """
    return _Resolver(root, packages).mapping(root, (), _DEPTH)


class _Resolver:
    """Replaces values below one root."""

    def __init__(self, root: Mapping, packages: Names[str]) -> None:
        self.root, self.packages = root, packages

    def mapping(self, node: Mapping, path: Path, depth: int) -> Mapping:
        entries = tuple(
            Entry(entry.key, self.node(entry.value, (*path, entry.name), path, depth), entry.merged)
            for entry in node.entries
        )
        return Mapping(entries, node.place)

    def node(self, node: Node, path: Path, inside: Path, depth: int) -> Node:
        """A node at `path`, its references read as those of a value in the mapping at `inside`."""
        match node:
            case Mapping():
                return self.mapping(node, path, depth)
            case Sequence():
                return Sequence(tuple(self.node(item, path, inside, depth) for item in node.items), node.place)
            case Scalar(value="???"):
                return Scalar(None, node.raw, node.place, node.plain)
            case Scalar(value=str(text)) if "${" in text:
                return self.scalar(node, text, inside, depth)
        return node

    def scalar(self, node: Scalar, text: str, inside: Path, depth: int) -> Node:
        """A reference: alone it takes the type of what it names, within a text its words."""
        stripped = text.strip()
        found = re.fullmatch(_NAME, stripped) or re.fullmatch(_RESOLVER, stripped)
        if found is not None:
            named = self.reference(found, inside, depth)
            if isinstance(named, Mapping | Sequence):
                return named
            return node if named is _UNKNOWN else Scalar(named, node.raw, node.place, node.plain)
        for found in [*re.finditer(_NAME, text), *re.finditer(_RESOLVER, text)]:
            named = self.reference(found, inside, depth)
            if named is not _UNKNOWN and not isinstance(named, Mapping | Sequence):
                text = text.replace(found[0], str(named))
        return Scalar(text, node.raw, node.place, node.plain)

    def reference(self, found: re.Match[str], inside: Path, depth: int) -> object:
        """What one reference stands for: a plain value, a mapping or list, or _UNKNOWN."""
        if found.re.pattern == _NAME:
            return self.named(found[1], inside, depth)
        if found[1] == "select":
            named = self.named(found[2], inside, depth)
            if named is not _UNKNOWN:
                return named
            if self.find(found[2], inside) is not None:
                return _UNKNOWN
        return _UNKNOWN if found[3] is None else _literal(found[3])

    def named(self, name: str, inside: Path, depth: int) -> object:
        place = self.find(name, inside)
        if place is None or depth == 0:
            return _UNKNOWN
        node, path = place
        node = self.node(node, path, path[:-1], depth - 1)
        if not isinstance(node, Scalar):
            return node
        return _UNKNOWN if isinstance(node.value, str) and "${" in node.value else node.value

    def find(self, name: str, inside: Path) -> tuple[Node, Path] | None:
        """The node of a name, and its path."""
        up = len(name) - len(name.lstrip("."))
        keys = tuple(name[up:].split("."))
        if up:
            keys = (*inside[: max(0, len(inside) - up + 1)], *keys)
        node = self.root.find(".".join(keys))
        if node is None and not up and keys[0] in self.packages:
            keys = keys[1:]
            node = self.root.find(".".join(keys)) if keys else None
        return None if node is None else (node, keys)


def _literal(text: str) -> object:
    """A resolver's default, typed as YAML would."""
    if text[:1] in ("'", '"') and text[-1:] == text[:1] and len(text) > 1:
        return text[1:-1]
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
