"""The source line that a finding stands on, with its stretch underlined."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from trainlint.documents import Place

WIDTH = 100
"""Most columns of source shown; longer lines are cut around the stretch."""
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def harmless(text: str) -> str:
    """A text on one line that can not drive the terminal: control and direction characters become U+FFFD."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def columns(text: str) -> int:
    """How many terminal cells a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text
    )


def excerpt(place: Place, lines: Sequence[str]) -> tuple[str, str] | None:
    """The line at a place and the marks below it, or None where the source is not at hand.

    A stretch over several lines is marked to the end of its first one.
    """
    if not 0 < place.line <= len(lines):
        return None
    line = lines[place.line - 1]
    first = min(place.column - 1, len(line))
    last = place.end_column - 1 if place.end_line == place.line else len(line.rstrip())
    last = max(min(last, len(line)), first)
    if not line.strip():
        return None
    begin = 0
    if len(line) > WIDTH:
        begin = max(0, min(first - WIDTH // 3, len(line) - WIDTH))
    shown = line[begin : begin + WIDTH]
    before, marked = line[begin:first], line[first : min(last, begin + WIDTH)]
    head, tail = "…" if begin else "", "…" if begin + WIDTH < len(line) else ""
    marks = " " * columns(harmless(head + before.expandtabs(4))) + "^" + "~" * (columns(harmless(marked)) - 1)
    return head + harmless(shown.expandtabs(4)).rstrip() + tail, marks
