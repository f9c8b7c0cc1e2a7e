"""Files to documents. Whatever is wrong with a file becomes a problem with a place; nothing here raises."""

from __future__ import annotations

import ast
import stat
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint.documents.comments import comments
from trainlint.documents.failure import Unreadable
from trainlint.documents.tree import Document, Node, Place, Problem, Scalar, Sequence, Syntax

if TYPE_CHECKING:
    from trainlint.documents.notebook import Notebook

SIZE_LIMIT = 2 * 1024 * 1024
"""Larger files are data, not configuration (bytes)."""
NOTEBOOK_LIMIT = 32 * 1024 * 1024
"""Notebooks hold what their cells printed and drew, so they may be larger (bytes)."""

SUFFIXES: dict[str, Syntax] = {
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".toml": "toml",
    ".py": "python",
    ".ipynb": "notebook",
    ".sh": "shell",
    ".slurm": "shell",
    ".sbatch": "shell",
    ".bash": "shell",
    ".mk": "text",
}
NAMES: dict[str, Syntax] = {"makefile": "text", "gnumakefile": "text"}
"""Files without an ending that may hold commands."""


def syntax_of(path: str) -> Syntax | None:
    """The syntax a file name promises, or None for a name that no config has."""
    name = Path(path)
    return SUFFIXES.get(name.suffix.lower()) or NAMES.get(name.name.lower())


def read(path: str, shown: str | None = None) -> Document:
    """Read one file; `shown` is the name that places carry (default: the path as given)."""
    file = shown or path
    syntax = syntax_of(path) or "text"
    try:
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode):
            return _unread(file, syntax, "unreadable", "not a regular file")
        limit = NOTEBOOK_LIMIT if syntax == "notebook" else SIZE_LIMIT
        if status.st_size > limit:
            size = f"{status.st_size / 1e6:.1f} MB is more than the {limit >> 20} MiB a config may have"
            return _unread(file, syntax, "too-large", size)
        data = Path(path).read_bytes()
    except OSError as error:
        return _unread(file, syntax, "unreadable", (error.strerror or str(error)).lower())
    return from_bytes(file, data, syntax)


def from_bytes(file: str, data: bytes, syntax: Syntax) -> Document:
    """A document from what a file holds."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return _unread(file, syntax, "encoding", "UTF-16, not UTF-8")
    if b"\0" in data:
        return _unread(file, syntax, "binary", "a binary file")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        good = data[: error.start].decode("utf-8")
        line, column = good.count("\n") + 1, len(good) - good.rfind("\n")
        message = f"byte 0x{data[error.start]:02x} is not UTF-8"
        return _unread(file, syntax, "encoding", message, Place(file, line, column, line, column + 1))
    return from_text(file, text, syntax)


def from_text(file: str, text: str, syntax: Syntax) -> Document:
    """A document from a text; lines may end as on any system."""
    problems: list[Problem] = []
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError as error:  # half of a surrogate pair: bytes that somebody else could not decode
        line, column = text.count("\n", 0, error.start) + 1, error.start - text.rfind("\n", 0, error.start)
        return _unread(file, syntax, "encoding", "not UTF-8", Place(file, line, column, line, column + 1))
    if text.startswith("\ufeff"):
        text = text[1:]
        problems.append(Problem("byte-order-mark", "the file starts with a byte order mark", Place(file)))
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    roots: tuple[Node, ...] = ()
    module: ast.Module | None = None
    notebook: Notebook | None = None
    try:
        if syntax == "notebook":
            from trainlint.documents.notebook import parse

            syntax = "json"  # what is said of one that breaks
            notebook = parse(file, text)
            text, syntax = notebook.code, "python"
        if syntax == "python":
            module = _python(file, text)
        elif syntax in ("yaml", "json", "toml"):
            roots, found = _parse(file, text, syntax)
            problems += found
    except Unreadable as error:
        problems.append(Problem(error.kind, error.message, error.place))
    return Document(file, syntax, text, roots, module, tuple(problems), comments(file, text, syntax, roots), notebook)


def _parse(file: str, text: str, syntax: Syntax) -> tuple[tuple[Node, ...], list[Problem]]:
    if syntax == "yaml":
        from trainlint.documents.yaml import parse
    elif syntax == "json":
        from trainlint.documents.json import parse
    else:
        from trainlint.documents.toml import parse
    return parse(file, text)


def _python(file: str, text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        line, column = error.lineno or 1, max(error.offset or 1, 1)
        raise Unreadable("syntax", error.msg, Place(file, line, column, line, column + 1)) from None
    except ValueError as error:
        raise Unreadable("syntax", str(error), Place(file)) from None
    except (RecursionError, MemoryError):
        raise Unreadable("too-deep", "nested too deeply", Place(file)) from None


def _unread(file: str, syntax: Syntax, kind: str, message: str, place: Place | None = None) -> Document:
    problem = Problem(kind, message, place or Place(file))  # type: ignore[arg-type]
    return Document(file, syntax, problems=(problem,))


__all__ = ["SIZE_LIMIT", "SUFFIXES", "Scalar", "Sequence", "from_bytes", "from_text", "read", "syntax_of"]
