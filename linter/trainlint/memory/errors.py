"""What can be wrong with a question about memory."""

from __future__ import annotations

from collections.abc import Iterable


class MemoryModelError(ValueError):
    """The memory of this run cannot be worked out."""


class UnknownArchitecture(MemoryModelError):  # noqa: N818
    """No data file knows this model type, and its config is too unlike any that is known."""

    def __init__(self, model_type: str) -> None:
        self.model_type = model_type
        super().__init__(f"no architecture is known for model type `{model_type}`")


class MissingShape(MemoryModelError):  # noqa: N818
    """The model's config lacks sizes that its architecture needs."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        super().__init__("the model's config says nothing of " + ", ".join(f"`{name}`" for name in self.names))


class ArchitectureFault(MemoryModelError):  # noqa: N818
    """An architecture's data file is wrong: ours to mend, named with its place."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
