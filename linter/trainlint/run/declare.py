"""How the vocabulary declares its fields: kind, unit, allowed words and meaning.

A group of fields is a plain immutable class, not a dataclass: generating twenty of those takes a tenth of the time
that linting one small file may take.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, NoReturn


class Declared(NamedTuple):
    """What is said of a field. `kind`: text, texts, count, number, flag or anything."""

    kind: str
    meaning: str
    unit: str = ""
    choices: tuple[str, ...] = ()


class Group:
    """Fields that belong together. A field that was not given is what its class says: None, where it is a value."""

    declared: ClassVar[Mapping[str, Declared]] = {}

    def __init_subclass__(cls) -> None:
        cls.declared = {name: field for name, field in vars(cls).items() if isinstance(field, Declared)}
        for name in cls.declared:
            setattr(cls, name, None)

    def __init__(self, **values: object) -> None:
        """Raises TypeError for a field that the group does not have."""
        for name in values:
            if not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} has no field {name}")
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} does not change")

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items() if name in self.declared)
        return f"{type(self).__name__}({given})"


def text(meaning: str, *choices: str) -> Any:
    """A name or a word, one of `choices` where they are given."""
    return Declared("text", meaning, "", choices)


def texts(meaning: str) -> Any:
    """A list of names."""
    return Declared("texts", meaning)


def count(meaning: str, unit: str = "") -> Any:
    """A whole number of `unit`."""
    return Declared("count", meaning, unit)


def number(meaning: str, unit: str = "") -> Any:
    """A number of `unit`."""
    return Declared("number", meaning, unit)


def flag(meaning: str) -> Any:
    """Yes or no."""
    return Declared("flag", meaning)


def anything(meaning: str) -> Any:
    """A structure that its readers take apart."""
    return Declared("anything", meaning)
