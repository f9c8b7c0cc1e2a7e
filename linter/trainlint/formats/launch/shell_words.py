"""Shell text as tokens: words with their quotes undone and expansions marked, operators, comments, line ends.

Nothing is expanded here (`command_line` does that). Positions are indices into the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple


class Piece(NamedTuple):
    """A stretch of a word: its characters, a variable's name (`default` and other forms are *unknown*), or unknown."""

    kind: Literal["text", "name", "all", "unknown", "nothing"]
    text: str
    start: int
    quoted: bool


class Token(NamedTuple):
    """A word with its pieces, an operator, a comment or a line's end; `continued`: a `\\` ended the line before it."""

    kind: Literal["word", "operator", "comment", "newline"]
    start: int
    end: int
    pieces: tuple[Piece, ...] = ()
    continued: bool = False


_PLAIN = re.compile(r"[^\s'\"\\$`;&|<>()]+")
_IN_DOUBLE = re.compile(r'[^"\\$`]+')
_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
_ALL = re.compile(r"\$\{([A-Za-z_]\w*)\[[@*]\]\}")
_ARGUMENTS = re.compile(r"\$(?:[@*]|\{[@*]\})")
_HERE = re.compile(r"<<(-?)\s*(['\"]?)([\w.-]+)\2")
_REDIRECT = re.compile(r"&>>?|[<>][<>&|]*")
_OPERATOR = re.compile(r"&&|\|\||;;|[;&|()]")


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a shell text; redirections with their targets and here-documents are left out."""
    at, size = 0, len(text)
    continued = skipping = False
    here: list[tuple[str, bool]] = []
    while at < size:
        char = text[at]
        if char == "\\" and text.startswith("\n", at + 1):
            continued, at = True, at + 2
        elif char == "\n":
            yield Token("newline", at, at + 1)
            at += 1
            for mark, indented in here:
                at = _behind_document(text, at, mark, indented)
            here.clear()
            continued = skipping = False
        elif char.isspace():
            at += 1
        elif char == "#":
            end = _end_of_line(text, at)
            yield Token("comment", at, end, (), continued)
            at = end
        elif not text.startswith("<<<", at) and (found := _HERE.match(text, at)):
            here.append((found[3], bool(found[1])))
            at = found.end()
        elif not text.startswith(("<(", ">("), at) and (found := _REDIRECT.match(text, at)):
            at, skipping = found.end(), True
        elif found := _OPERATOR.match(text, at):
            yield Token("operator", at, found.end(), (), continued)
            at, continued, skipping = found.end(), False, False
        else:
            pieces, end = _word(text, at)
            number = end < size and text[end] in "<>" and text[at:end].isdigit()
            if not skipping and not number:
                yield Token("word", at, end, tuple(pieces), continued)
                continued = False
            skipping = False
            at = end


def _word(text: str, at: int) -> tuple[list[Piece], int]:
    pieces: list[Piece] = []
    size = len(text)
    while at < size:
        char = text[at]
        if found := _PLAIN.match(text, at):
            pieces.append(Piece("text", found[0], at, False))
            at = found.end()
        elif char == "'":
            end = text.find("'", at + 1)
            end = size if end < 0 else end
            pieces.append(Piece("text", text[at + 1 : end], at + 1, True))
            at = end + 1
        elif char == '"':
            at = _double(text, at + 1, pieces)
        elif char == "\\":
            if text[at + 1 : at + 2] != "\n":
                pieces.append(Piece("text", text[at + 1 : at + 2], at + 1, True))
            at += 2
        elif char in "$`":
            at = _expansion(text, at, pieces, False)
        elif text.startswith(("<(", ">("), at):
            end = _balanced(text, at + 1)
            pieces.append(Piece("unknown", text[at:end], at, True))
            at = end
        else:
            break
    return pieces, min(at, size)


def _double(text: str, at: int, pieces: list[Piece]) -> int:
    pieces.append(Piece("text", "", at, True))
    size = len(text)
    while at < size:
        char = text[at]
        if char == '"':
            return at + 1
        if found := _IN_DOUBLE.match(text, at):
            pieces.append(Piece("text", found[0], at, True))
            at = found.end()
        elif char == "\\":
            after = text[at + 1 : at + 2]
            if after == "\n":
                at += 2
            elif after and after in '"\\$`':
                pieces.append(Piece("text", after, at + 1, True))
                at += 2
            else:
                pieces.append(Piece("text", char, at, True))
                at += 1
        else:
            at = _expansion(text, at, pieces, True)
    return at


def _expansion(text: str, at: int, pieces: list[Piece], quoted: bool) -> int:
    """What a `$` or a backquote starts; the position behind it."""
    if found := _VARIABLE.match(text, at):
        pieces.append(Piece("name", found[1] or found[2], at, quoted))
        return found.end()
    if found := _ALL.match(text, at):
        pieces.append(Piece("all", found[1], at, quoted))
        return found.end()
    if found := _ARGUMENTS.match(text, at):
        pieces.append(Piece("nothing", found[0], at, quoted))
        return found.end()
    after = text[at + 1 : at + 2]
    if text[at] == "`":
        end = text.find("`", at + 1)
        end = len(text) if end < 0 else end + 1
    elif after and after in "({":
        end = _balanced(text, at + 1)
    elif after == "'" and not quoted:
        end = at + 2
        while end < len(text) and text[end] != "'":
            end += 2 if text[end] == "\\" else 1
        content = text[at + 2 : end]
        pieces.append(Piece("unknown" if "\\" in content else "text", content, at + 2, True))
        return end + 1
    elif after.isdigit() or (after and after in "#?$!-"):
        end = at + 2
    else:
        pieces.append(Piece("text", "$", at, quoted))
        return at + 1
    pieces.append(Piece("unknown", text[at:end], at, quoted))
    return end


def _balanced(text: str, at: int) -> int:
    """The position behind the bracket that closes the one at `at`, quotes respected."""
    opening = text[at]
    closing = {"(": ")", "{": "}"}[opening]
    depth, size = 0, len(text)
    while at < size:
        char = text[at]
        if char == "\\":
            at += 1
        elif char == "'" and opening == "(":
            end = text.find("'", at + 1)
            at = size if end < 0 else end
        elif char == opening:
            depth += 1
        elif char == closing:
            depth -= 1
            if not depth:
                return at + 1
        at += 1
    return size


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _behind_document(text: str, at: int, mark: str, indented: bool) -> int:
    """The position behind a here-document whose body starts at `at`."""
    while at < len(text):
        end = _end_of_line(text, at)
        line = text[at:end]
        at = min(end + 1, len(text))
        if (line.lstrip("\t") if indented else line) == mark:
            break
    return at
