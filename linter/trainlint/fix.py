"""Fixes: edits to the source text, as a diff or written back without touching anything else of the file.

Places count in the text as it was linted: without byte order mark, lines ended by `\\n`. The texts here are those of
the files, mark and line ends included; both keep their lines and columns, so an edit fits either.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainlint.documents import Place
from trainlint.errors import TrainlintError
from trainlint.rule import Edit, Finding

_LINE_END = re.compile(r"\r\n|\r|\n")
BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class Fixed:
    """What came of a round of fixes: the changed texts by file, whose fixes were applied, and whose have to wait.

    A finding waits when its fix overlaps one that was applied; check the new texts and go another round.
    """

    texts: dict[str, str]
    applied: tuple[Finding, ...] = ()
    waiting: tuple[Finding, ...] = ()


def apply(sources: Mapping[str, str], findings: Iterable[Finding], unsafe: bool = False) -> Fixed:
    """Apply the safe fixes, and the unsafe ones too on demand, each whole or not at all.

    Of fixes that overlap the first wins, of equal ones each counts. A fix of a file that is not in `sources`, or of
    lines that it does not have, is left alone.
    """
    lines = {file: _starts(text) for file, text in sources.items()}
    taken: dict[str, dict[tuple[int, int], str]] = {file: {} for file in sources}
    applied: list[Finding] = []
    waiting: list[Finding] = []
    for finding in findings:
        fix = finding.fix
        if fix is None or not fix.edits or (fix.safety == "unsafe" and not unsafe):
            continue
        if any(edit.place.file not in sources for edit in fix.edits):
            continue
        spans = [(edit, _span(edit.place, lines[edit.place.file])) for edit in fix.edits]
        wanted = [(edit, span) for edit, span in spans if span is not None]
        if len(wanted) < len(spans):
            continue
        if all(taken[edit.place.file].get(span) == edit.text for edit, span in wanted):
            applied.append(finding)
        elif _collides(wanted, taken):
            waiting.append(finding)
        else:
            applied.append(finding)
            for edit, span in wanted:
                taken[edit.place.file][span] = edit.text
    changed = {file: _edited(sources[file], edits) for file, edits in taken.items() if edits}
    return Fixed(
        {file: text for file, text in changed.items() if text != sources[file]}, tuple(applied), tuple(waiting)
    )


def diff(file: str, before: str, after: str) -> str:
    """The unified diff of a file's text, empty where nothing changed; `patch` and `git apply` take it."""
    import difflib

    out: list[str] = []
    name = file.replace("\\", "/")
    for line in difflib.unified_diff(_lines(before), _lines(after), f"a/{name}", f"b/{name}"):
        out.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(out)


def read(path: str) -> str:
    """The text of a file with its byte order mark and line ends; raises TrainlintError where that fails."""
    try:
        return Path(path).read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TrainlintError(f"can not read `{path}` to fix it: {_reason(error)}") from None


def write(path: str, text: str) -> None:
    """Replace a file's text at once: a reader sees the old or the new one. Mode stays, a link stays a link.

    Raises TrainlintError where the file or its folder can not be written; the file is then as it was.
    """
    target = os.path.realpath(path)
    written = ""
    try:
        mode = stat.S_IMODE(os.stat(target).st_mode)
        if not os.access(target, os.W_OK):
            raise PermissionError(13, "permission denied")
        handle, written = tempfile.mkstemp(prefix=".trainlint-", dir=os.path.dirname(target))
        with os.fdopen(handle, "wb") as stream:
            stream.write(text.encode("utf-8"))
        os.chmod(written, mode)
        os.replace(written, target)
    except OSError as error:
        if written:
            with contextlib.suppress(OSError):
                os.unlink(written)
        raise TrainlintError(f"can not write `{path}`: {_reason(error)}") from None


def _starts(text: str) -> list[int]:
    """Where each line starts, and the end of the text; the byte order mark stands before the first."""
    first = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    return [first, *(found.end() for found in _LINE_END.finditer(text)), len(text)]


def _span(place: Place, starts: list[int]) -> tuple[int, int] | None:
    """Where a place lies in a text with these line starts; None if it lies outside."""
    lines = len(starts) - 1

    def offset(line: int, column: int) -> int | None:
        if line == lines + 1 and column == 1:
            return starts[-1]
        if not 0 < line <= lines:
            return None
        found = starts[line - 1] + column - 1
        return found if found <= starts[line] else None

    begin, end = offset(place.line, place.column), offset(place.end_line, place.end_column)
    return None if begin is None or end is None or end < begin else (begin, end)


def _collides(wanted: list[tuple[Edit, tuple[int, int]]], taken: Mapping[str, dict[tuple[int, int], str]]) -> bool:
    """Whether an edit meets one of another fix, or two of the same fix meet."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for edit, span in wanted:
        others = [*taken[edit.place.file], *spans.setdefault(edit.place.file, [])]
        if any(span[0] == other[0] or (span[0] < other[1] and other[0] < span[1]) for other in others):
            return True
        spans[edit.place.file].append(span)
    return False


def _edited(text: str, edits: Mapping[tuple[int, int], str]) -> str:
    ends = Counter(_LINE_END.findall(text))
    newline = ends.most_common(1)[0][0] if ends else "\n"
    for (begin, end), new in sorted(edits.items(), reverse=True):
        text = text[:begin] + new.replace("\n", newline) + text[end:]
    return text


def _lines(text: str) -> list[str]:
    """Lines with their ends, broken at `\\n` alone as `diff` does."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return (error.strerror or str(error)).lower() if isinstance(error, OSError) else "not UTF-8"
