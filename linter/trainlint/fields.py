"""Reading a rule file's tree: what a field must be, and the error with its place where it is not."""

from __future__ import annotations

from trainlint.documents import Mapping, Node, Place, Scalar, Sequence
from trainlint.rule import RuleError


def mapping(node: Node | None, what: str, place: Place | None = None) -> Mapping:
    """A node that must be a mapping; `place` is where a missing one belongs."""
    if isinstance(node, Mapping):
        return node
    raise RuleError(f"{what} is a mapping", node.place if node is not None else place)


def get(mapping: Mapping, name: str) -> Node:
    """A field that must be there."""
    node = mapping.get(name)
    if node is None:
        raise RuleError(f"`{name}` is missing", mapping.place)
    return node


def items(mapping: Mapping, name: str) -> tuple[Node, ...]:
    """A field that must be a list of conditions."""
    node = get(mapping, name)
    if not isinstance(node, Sequence) or not node.items:
        raise RuleError(f"`{name}` is a list of conditions", node.place)
    return node.items


def text(node: Node | None, name: str) -> str:
    """A node that must be a word or a text."""
    if isinstance(node, Scalar) and isinstance(node.value, str | int | float | bool):
        return node.value if isinstance(node.value, str) else node.raw
    raise RuleError(f"`{name}` is a text", node.place if node is not None else None)


def texts(mapping: Mapping, name: str) -> tuple[str, ...]:
    """A list of texts, empty where the field is absent."""
    node = mapping.get(name)
    if node is None:
        return ()
    if not isinstance(node, Sequence):
        raise RuleError(f"`{name}` is a list", node.place)
    return tuple(text(item, name) for item in node.items)


def only(mapping: Mapping, names: tuple[str, ...]) -> None:
    """Refuse every other field."""
    for entry in mapping.entries:
        if entry.name not in names:
            raise RuleError(f"`{entry.name}` does not belong here", entry.key.place)
