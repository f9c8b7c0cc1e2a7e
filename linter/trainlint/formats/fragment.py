"""What one file says of a run, before other files, versions and defaults are known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from trainlint.documents import Document, Entry, Mapping, Place, Scalar, Sequence
from trainlint.run import Value

Role = Literal[
    "deepspeed", "accelerate", "model", "adapter", "dataset", "dataset-info", "script", "config", "tokenizer"
]


@dataclass(frozen=True, slots=True)
class Reference:
    """A file or an id that a config names: `role` says what for, `text` is as written."""

    role: Role
    text: str
    place: Place
    key: str = ""


@dataclass(slots=True)
class Fragment:
    """One recognised document.

    `values` holds what is *written*, by path of the run; `references` what it names; `root` the mapping it was read
    from (None for scripts); `launches` whether it is a trainer's config, so that a run starts here; `starts` whether it
    is a launcher: the runs of what it names are started by it. `section` and `framework` name the key history that its
    keys belong to. `others` are further trainings that the same document starts, each a fragment of its own.
    """

    format: str
    document: Document
    root: Mapping | None = None
    framework: str = ""
    section: str = ""
    launches: bool = False
    starts: bool = False
    values: dict[str, Value[object]] = field(default_factory=dict)
    references: list[Reference] = field(default_factory=list)
    facts: dict[str, object] = field(default_factory=dict)
    others: tuple[Fragment, ...] = ()
    _keys: dict[str, Entry] | None = None

    @property
    def file(self) -> str:
        """The file as it is shown."""
        return self.document.file

    @property
    def keys(self) -> dict[str, Entry]:
        """Every written key by its dotted path, mappings included; `name[0]` steps into lists."""
        if self._keys is None:
            self._keys = dict(_walk(self.root, "")) if self.root is not None else {}
        return self._keys

    def entry(self, key: str) -> Entry | None:
        """The entry of a dotted key as the user wrote it, or None."""
        return self.keys.get(key)

    def written(self, key: str) -> object:
        """The plain value of a scalar key, or None where it is absent or no scalar."""
        entry = self.keys.get(key)
        return entry.value.value if entry is not None and isinstance(entry.value, Scalar) else None

    def value(self, key: str, unit: str = "") -> Value[object] | None:
        """A written scalar key as a Value with its place, or None."""
        entry = self.keys.get(key)
        if entry is None or not isinstance(entry.value, Scalar):
            return None
        return say(self.format, key, entry.value, entry.value.value, unit)


def say(format_name: str, key: str, node: Scalar, value: object, unit: str = "") -> Value[object]:
    """A written value at its node."""
    return Value(value, "written", key, node.place, node.raw, unit, file_format=format_name)


def _walk(mapping: Mapping, prefix: str) -> Iterator[tuple[str, Entry]]:
    for name, entry in mapping.index.items():
        path = f"{prefix}{name}"
        yield path, entry
        if isinstance(entry.value, Mapping):
            yield from _walk(entry.value, path + ".")
        elif isinstance(entry.value, Sequence):
            for at, item in enumerate(entry.value.items):
                if isinstance(item, Mapping):
                    yield from _walk(item, f"{path}[{at}].")
