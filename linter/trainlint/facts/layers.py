"""The classes of a model's transformer layers, which FSDP's wrap policy looks up by name.

Only models are known whose modules all come from one file: what is another model's layer class is in none of them.
"""

from __future__ import annotations

from functools import cache

from trainlint.facts import store


def find(model_type: str) -> tuple[str, ...] | None:
    """The layer classes of a `model_type`, or None where they are not known."""
    return _layers().get(model_type)


def owner(name: str) -> str | None:
    """The `model_type` whose layer class has this name, or None."""
    return next((kind for kind, names in _layers().items() if name in names), None)


@cache
def _layers() -> dict[str, tuple[str, ...]]:
    return {kind: tuple(names) for kind, names in store.read("facts", "layers")["layers"].items()}
