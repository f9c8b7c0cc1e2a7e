"""What a format is: is this document mine, what does it say, and what does the framework make of it?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from trainlint.documents import Document, Node
from trainlint.formats.fragment import Fragment
from trainlint.run import Value


@dataclass(slots=True)
class Draft:
    """A run while it is being put together: what the files say, joined, and what is known of versions.

    A format's `complete` adds the framework's defaults and what follows from them. `put` never overwrites what a file
    says; a value that only a version decides is put with `either`.
    """

    fragments: Sequence[Fragment]
    values: dict[str, Value[object]]
    versions: Mapping[str, Value[str]] = field(default_factory=dict)
    possible: dict[str, tuple[Value[object], ...]] = field(default_factory=dict)

    def get(self, path: str) -> object:
        """The plain value at a path, or None where it is unknown."""
        value = self.values.get(path)
        return None if value is None else value.value

    def has(self, path: str) -> bool:
        """Whether anything is known at a path, be it only what is possible."""
        return path in self.values or path in self.possible

    def put(self, path: str, value: object, origin: str, note: str = "", unit: str = "") -> None:
        """Add a default, derived or assumed value where nothing is known yet."""
        if not self.has(path):
            self.values[path] = Value(value, origin, unit=unit, note=note)  # type: ignore[arg-type]

    def default(self, path: str, value: object, note: str, unit: str = "") -> None:
        """The framework's default; `note` names framework and versions: `transformers >=4.32`."""
        self.put(path, value, "default", note, unit)

    def derive(self, path: str, value: object, note: str, unit: str = "") -> None:
        """What follows from other values; `note` says from which."""
        self.put(path, value, "derived", note, unit)

    def either(self, path: str, *options: tuple[object, str], origin: str = "default") -> None:
        """Values between which something unknown decides: (value, when it holds). One distinct value is simply put."""
        if self.has(path):
            return
        if len({repr(value) for value, _ in options}) == 1:
            self.put(path, options[0][0], origin, "")
            return
        self.possible[path] = tuple(Value(value, origin, note=note) for value, note in options)  # type: ignore[arg-type]

    def fragment(self, *formats: str) -> Fragment | None:
        """The first fragment of one of these formats."""
        return next((fragment for fragment in self.fragments if fragment.format in formats), None)


def _nothing(draft: Draft) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Format:
    """One file format.

    `recognise(document, root)` is asked with each YAML document (or the JSON / TOML value, or None for scripts) and
    says how sure it is: 0 not mine, up to 100; the surest format takes the document. It looks at content alone and is
    quick, for it sees every file. `read` returns the fragment. `complete` is called once the run's files are joined
    and versions are known, for the format of the run's root.
    """

    name: str
    title: str
    recognise: Callable[[Document, Node | None], int]
    read: Callable[[Document, Node | None], Fragment]
    complete: Callable[[Draft], None] = _nothing
    framework: str = ""
    package: str = ""
