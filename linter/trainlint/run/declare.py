"""How the vocabulary declares a field: its kind, unit, allowed words and meaning, as the dataclass field's metadata."""

from __future__ import annotations

from dataclasses import field
from typing import Any


def _field(kind: str, meaning: str, unit: str = "", choices: tuple[str, ...] = ()) -> Any:
    return field(default=None, metadata={"kind": kind, "meaning": meaning, "unit": unit, "choices": choices})


def text(meaning: str, *choices: str) -> Any:
    """A name or a word, one of `choices` where they are given."""
    return _field("text", meaning, "", choices)


def texts(meaning: str) -> Any:
    """A list of names."""
    return _field("texts", meaning)


def count(meaning: str, unit: str = "") -> Any:
    """A whole number of `unit`."""
    return _field("count", meaning, unit)


def number(meaning: str, unit: str = "") -> Any:
    """A number of `unit`."""
    return _field("number", meaning, unit)


def flag(meaning: str) -> Any:
    """Yes or no."""
    return _field("flag", meaning)


def anything(meaning: str) -> Any:
    """A structure that its readers take apart."""
    return _field("anything", meaning)
