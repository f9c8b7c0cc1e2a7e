"""Comments that speak to the linter: `# trainlint: …`, also behind another comment; none inside of texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from trainlint.documents.tree import Comment, Node, Place, Scalar, Syntax, nodes

_SPEAKS = r"#\s*trainlint:\s*(?P<text>.*)"
_SHELL = r"""(?msx)
    \\.  |  '[^']*'  |  "(?:[^"\\]|\\.)*"
    |  (?: (?<=[\s;&|()`]) | ^ ) (?P<comment>\#[^\n]*)"""


class _Found(NamedTuple):
    """A whole comment: its line, the column of its `#` (both from 1), and its text."""

    line: int
    column: int
    text: str


def comments(file: str, text: str, syntax: Syntax, roots: tuple[Node, ...]) -> tuple[Comment, ...]:
    """All comments of a text that are for the linter; JSON has none."""
    if syntax == "json" or "trainlint:" not in text:
        return ()
    lines = text.split("\n")
    match syntax:
        case "python":
            found = _python(text) or _plain(lines)
        case "shell":
            found = _shell(text)
        case "yaml" | "toml":
            found = _outside(lines, roots, syntax)
        case _:
            found = _plain(lines)
    made: list[Comment] = []
    for line, column, comment in found:
        speaks = re.search(_SPEAKS, comment)
        if speaks is None:
            continue
        start = column + speaks.start()
        end = column + len(comment.rstrip())
        alone = not lines[line - 1][: start - 1].strip()
        made.append(Comment(speaks["text"].strip(), Place(file, line, start, line, end), alone))
    return tuple(made)


def _python(text: str) -> list[_Found]:
    """The comments of a script; none where it can not be read."""
    import io
    import tokenize

    try:
        return [
            _Found(token.start[0], token.start[1] + 1, token.string)
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type == tokenize.COMMENT
        ]
    except (tokenize.TokenError, SyntaxError, ValueError, RecursionError):
        return []


def _shell(text: str) -> list[_Found]:
    found: list[_Found] = []
    for token in re.finditer(_SHELL, text):
        if token["comment"]:
            at = token.start("comment")
            found.append(_Found(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at), token["comment"]))
    return found


def _plain(lines: list[str]) -> list[_Found]:
    """Comments where nothing is known of the text around: behind a blank, and no open quote before."""
    found: list[_Found] = []
    for number, line in enumerate(lines, 1):
        hit = re.search(r"(?:^|(?<=\s))#", line) if "trainlint:" in line else None
        if hit is not None and not (line.count('"', 0, hit.start()) % 2 or line.count("'", 0, hit.start()) % 2):
            found.append(_Found(number, hit.start() + 1, line[hit.start() :]))
    return found


def _outside(lines: list[str], roots: tuple[Node, ...], syntax: Syntax) -> list[_Found]:
    """Comments of a text whose quoted and block scalars are known."""
    if not roots:
        return _plain(lines)
    texts = [place for root in roots for place in _texts(root)]
    opens = re.compile("#" if syntax == "toml" else r"(?:^|(?<=\s))#")
    found: list[_Found] = []
    for number, line in enumerate(lines, 1):
        if "trainlint:" not in line:
            continue
        for hit in opens.finditer(line):
            here = (number, hit.start() + 1)
            if not any(place[1:3] <= here < place[3:5] for place in texts):
                found.append(_Found(number, hit.start() + 1, line[hit.start() :]))
                break
    return found


def _texts(root: Node) -> Iterator[Place]:
    """Where texts in quotes and blocks of text stand, keys included."""
    return (node.place for node in nodes(root) if isinstance(node, Scalar) and not node.plain)
