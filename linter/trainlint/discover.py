"""Paths to files: folders are walked for names that a config may have, what git ignores is left out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trainlint.documents import Document, Place, Problem, syntax_of
from trainlint.errors import TrainlintError
from trainlint.ignored import Patterns, of_file, patterns

NEVER = frozenset(
    (
        ".bzr",
        ".cache",
        ".direnv",
        ".eggs",
        ".git",
        ".hg",
        ".idea",
        ".ipynb_checkpoints",
        ".mypy_cache",
        ".nox",
        ".pytest_cache",
        ".ruff_cache",
        ".svn",
        ".tox",
        ".trainlint_cache",
        ".venv",
        ".vscode",
        "__pycache__",
        "__pypackages__",
        "build",
        "dist",
        "mlruns",
        "node_modules",
        "site-packages",
        "venv",
        "wandb",
    )
)
"""Folders that nobody's configs lie in; whoever names one on the command line gets it walked."""


@dataclass(slots=True)
class Discovery:
    """The files to lint, each once, and a document for every folder that could not be looked into."""

    files: list[str] = field(default_factory=list)
    problems: list[Document] = field(default_factory=list)


def discover(
    paths: Sequence[str],
    exclude: Iterable[str] = (),
    root: Path | None = None,
    *,
    gitignore: bool = True,
    force_exclude: bool = False,
) -> Discovery:
    """The files under some paths, folders in order of names; raises TrainlintError for a path that does not exist.

    A file that is named is always taken, whatever its name (with `force_exclude`: unless `exclude` names it). Of a
    folder's files those with a config's ending are taken, not what `.gitignore` or `exclude` leave out (`exclude` has
    the same pattern language, relative to `root`, the working folder by default). Links to folders are not followed.
    """
    found = Discovery()
    seen: set[str] = set()
    excluded = patterns(_absolute(root or Path()), exclude)
    for path in paths or (".",):
        shown = _tidy(path)
        absolute = _absolute(Path(path))
        if os.path.isdir(path):
            walk = _Walk(found, excluded, gitignore)
            layers = walk.above(absolute) if gitignore else []
            files = walk.files("" if shown == "." else shown, absolute, layers)
        elif os.path.lexists(path):
            taken = not (force_exclude and _excluded(excluded, absolute))
            files = iter([(shown, absolute)] if taken else [])
        else:
            raise TrainlintError(f"no such file or folder: {path}")
        for name, place in files:
            if place not in seen:
                seen.add(place)
                found.files.append(name)
    return found


class _Walk:
    def __init__(self, found: Discovery, excluded: Patterns, gitignore: bool) -> None:
        self.found = found
        self.excluded = excluded
        self.gitignore = gitignore

    def above(self, folder: str) -> list[Patterns]:
        """The ignore files from a repository's top down to the folder above this one."""
        layers: list[Patterns] = []
        for parent in (Path(folder), *Path(folder).parents):
            if parent != Path(folder):
                layers += filter(None, [of_file(parent / ".gitignore", parent.as_posix())])
            if os.path.exists(parent / ".git"):
                own = of_file(parent / ".git" / "info" / "exclude", parent.as_posix())
                return [own, *reversed(layers)] if own else layers[::-1]
        return []

    def files(self, shown: str, absolute: str, layers: list[Patterns]) -> Iterator[tuple[str, str]]:
        """The files below a folder as they are shown and as absolute paths."""
        try:
            with os.scandir(absolute) as opened:
                entries = sorted(opened, key=lambda entry: entry.name)
        except OSError as error:
            place = Place(shown or ".")
            problem = Problem("unreadable", (error.strerror or str(error)).lower(), place)
            self.found.problems.append(Document(place.file, "text", problems=(problem,)))
            return
        if self.gitignore and any(entry.name == ".gitignore" for entry in entries):
            own = of_file(Path(absolute, ".gitignore"), absolute)
            layers = [*layers, own] if own else layers
        for entry in entries:
            name = f"{shown}/{entry.name}" if shown and not shown.endswith("/") else shown + entry.name
            path = f"{absolute.rstrip('/')}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in NEVER and not self.left_out(path, True, layers):
                    yield from self.files(name, path, layers)
            elif syntax_of(entry.name) is not None and _is_file(entry) and not self.left_out(path, False, layers):
                yield name, path

    def left_out(self, path: str, folder: bool, layers: list[Patterns]) -> bool:
        for layer in (self.excluded, *reversed(layers)):
            verdict = layer.ignores(path, folder)
            if verdict is not None:
                return verdict
        return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    """A regular file or a link to one; a link that leads nowhere is git-annex's or a cache's business."""
    try:
        return entry.is_file()
    except OSError:
        return False


def _excluded(excluded: Patterns, path: str) -> bool:
    """Whether a file or a folder above it is excluded."""
    parents = [parent.as_posix() for parent in Path(path).parents]
    return excluded.ignores(path, False) is True or any(excluded.ignores(parent, True) for parent in parents)


def _absolute(path: Path) -> str:
    return Path(os.path.abspath(path)).as_posix()


def _tidy(path: str) -> str:
    """A path as it is shown: `./a//b/` is `a/b`."""
    return Path(os.path.normpath(path)).as_posix()
