"""Colour on a terminal: a few ANSI sequences, and when to use them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

CODES = {"error": "1;31", "warning": "1;33", "info": "1;36", "help": "1;32", "note": "1;34", "bold": "1", "dim": "2"}
"""Select Graphic Rendition parameters (ECMA-48) by what they mark."""


def wanted(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether to colour what goes to a stream: NO_COLOR, then FORCE_COLOR, then whether it is a real terminal."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return environ.get("TERM") != "dumb" and stream.isatty()


def paint(text: str, kind: str, color: bool) -> str:
    """The text in the colour of its kind, or as it is."""
    return f"\x1b[{CODES[kind]}m{text}\x1b[0m" if color and text else text


def encodes(stream: TextIO, character: str) -> bool:
    """Whether a stream's encoding has a character."""
    try:
        character.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
