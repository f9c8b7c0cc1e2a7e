"""Patterns of `.gitignore`: the same language for what git leaves out and for `exclude` in the settings.

https://git-scm.com/docs/gitignore#_pattern_format. Written out here because importing a library for it costs more time
(66 ms) than linting a folder of configs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line: what it matches, relative to the folder it is written for, and what that means."""

    matches: re.Pattern[str]
    folders_only: bool
    again: bool


@dataclass(frozen=True, slots=True)
class Patterns:
    """The patterns that hold below a folder (`base`, absolute, `/` between names, without one at the end)."""

    base: str
    patterns: tuple[Pattern, ...]

    def ignores(self, path: str, folder: bool) -> bool | None:
        """Whether an absolute path is left out (True) or taken in again (False); None where no pattern speaks of it."""
        if not path.startswith(self.base + "/"):
            return None
        relative = path[len(self.base) + 1 :]
        for pattern in reversed(self.patterns):
            if (folder or not pattern.folders_only) and pattern.matches.fullmatch(relative):
                return not pattern.again
        return None


def patterns(base: str, lines: Iterable[str]) -> Patterns:
    """The patterns of some lines; blank lines, comments and what git can not read either say nothing."""
    made = (_pattern(line) for line in lines)
    return Patterns(base.rstrip("/"), tuple(pattern for pattern in made if pattern is not None))


def of_file(path: Path, base: str) -> Patterns | None:
    """The patterns of a `.gitignore`, or None where there is none (or it can not be read)."""
    try:
        text = path.read_text("utf-8", errors="replace")
    except OSError:
        return None
    found = patterns(base, text.splitlines())
    return found if found.patterns else None


def _pattern(line: str) -> Pattern | None:
    text = re.sub(r"(?<!\\)((?:\\\\)*) +$", r"\1", line.rstrip("\n"))
    if not text or text.startswith("#"):
        return None
    again = text.startswith("!")
    text = text[1:] if again else text
    folders_only = text.endswith("/")
    text = text.rstrip("/") if folders_only else text
    if not text:
        return None
    anchored = "/" in text
    body = _regex(text.removeprefix("/"))
    try:
        return Pattern(re.compile(body if anchored else f"(?:.*/)?{body}", re.DOTALL), folders_only, again)
    except re.error:
        return None


_TOKEN = re.compile(
    r"(?P<start>^\*\*/)|(?P<middle>/\*\*/)|(?P<end>/\*\*$)|(?P<stars>\*+)|(?P<one>\?)"
    r"|(?P<set>\[[!^]?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\])|\\(?P<escaped>.)|(?P<sign>.)",
    re.DOTALL,
)
_MEANS = {"start": "(?:.*/)?", "middle": "/(?:.*/)?", "end": "/.+", "stars": "[^/]*", "one": "[^/]"}
_CLASSES = {"alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "digit": "0-9", "lower": "a-z", "upper": "A-Z", "space": r"\s"}


def _regex(text: str) -> str:
    out: list[str] = []
    for found in _TOKEN.finditer(text):
        match found.lastgroup:
            case "escaped" | "sign" as kind:
                out.append(re.escape(found[kind]))
            case "set":
                out.append(_set(found.group()[1:-1]))
            case str(kind):
                out.append(_MEANS[kind])
    return "".join(out)


def _set(inner: str) -> str:
    negated = inner[:1] in ("!", "^")
    inner = inner[1:] if negated else inner
    inner = re.sub(r"\[:(\w+):\]", lambda found: _CLASSES.get(found[1], ""), inner)
    escaped = re.sub(r"\\(.)|([\[\]^&~|])", lambda found: "\\" + (found[1] or found[2]), inner)
    return f"(?!/)[{'^' if negated else ''}{escaped}]"
