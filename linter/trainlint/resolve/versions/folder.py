"""The versions known in a folder: of each kind of file what it says, the nearest folder first.

Lock files win over constraints, those over requirements, conda environments, containers and projects. A range gives
way to a release inside of it that a file further down the list, or a folder above, pins.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from trainlint.facts.versions import parse
from trainlint.facts.versions import version as release
from trainlint.resolve.versions.lock import LOCKS, locked
from trainlint.resolve.versions.requirement import Said, requirement_file
from trainlint.run import Value

Reader = Callable[[Path], Iterator[Said]]
Known = dict[str, Value[str] | None]
PROJECTS = frozenset(("setup.py", "setup.cfg", "Pipfile", "pyproject.toml"))
_CONDA = re.compile(r"(?:environment|conda)[\w.-]*\.ya?ml")
_CONTAINER = re.compile(r"(?:Docker|Container)file(?:\.[\w-]+)?|[\w.-]+\.[Dd]ockerfile")


def versions_at(folder: Path) -> Mapping[str, Value[str]]:
    """The versions known in a folder, by package."""
    known = _versions_at(_real(os.path.join(os.getcwd(), folder)))
    return {name: value for name, value in known.items() if value is not None}


@lru_cache(maxsize=4096)
def _real(folder: str) -> Path:
    return Path(os.path.realpath(folder))


@lru_cache(maxsize=4096)
def _versions_at(folder: Path) -> Known:
    above = _versions_at(folder.parent) if folder.parent != folder and not os.path.exists(folder / ".git") else {}
    return _over(above, _here(folder))


def _here(folder: Path) -> Known:
    """What the files of one folder say together, the least of them first."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return {}
    known: Known = {}
    for read, paths in _kinds(folder, names):
        known = _over(known, _agreed([dict(read(path)) for path in paths]))
    return known


def _kinds(folder: Path, names: list[str]) -> Iterator[tuple[Reader, list[Path]]]:
    """The files of each kind, from those that give way to those that win."""
    if not PROJECTS.isdisjoint(names):
        from trainlint.resolve.versions.project import READERS

        for name, reader in READERS.items():
            if name in names:
                yield reader, [folder / name]
    if containers := [folder / name for name in names if _CONTAINER.fullmatch(name)]:
        from trainlint.resolve.versions.container import dockerfile

        main = [path for path in containers if path.name in ("Dockerfile", "Containerfile")]
        yield dockerfile, main or containers
    if environments := [folder / name for name in names if _CONDA.fullmatch(name)]:
        from trainlint.resolve.versions.conda import environment

        main = [path for path in environments if path.stem == "environment"]
        yield environment, main or environments
    lists = [name for name in names if "requirements" in name and name.endswith((".txt", ".in"))]
    if "requirements" in names:
        below = folder / "requirements"
        inner = sorted(os.listdir(below)) if below.is_dir() else []
        yield requirement_file, [below / name for name in inner if name.endswith(".txt")]
    yield requirement_file, [folder / name for name in lists if name.endswith(".in")]
    yield requirement_file, [folder / name for name in lists if name.endswith(".txt") and name != "requirements.txt"]
    yield requirement_file, [folder / "requirements.txt"] if "requirements.txt" in lists else []
    yield (
        requirement_file,
        [folder / name for name in names if name.startswith("constraints") and name.endswith(".txt")],
    )
    yield locked, [folder / name for name in names if name in LOCKS]


def _agreed(files: list[Known]) -> Known:
    """What files of one kind say where they agree: of `-cpu` and `-gpu` it is not known which one is installed."""
    if len(files) == 1:
        return files[0]
    known: Known = {}
    for name in dict.fromkeys(name for file in files for name in file):
        said = [file[name] for file in files if name in file]
        if len({None if value is None else value.value for value in said}) == 1:
            known[name] = said[0]
    return known


def _over(known: Known, winning: Known) -> Known:
    """What counts where both say something: the winning one, or a release that it allows."""
    return {**known, **{name: _inside(known.get(name), value) for name, value in winning.items()}}


def _inside(pinned: Value[str] | None, asked: Value[str] | None) -> Value[str] | None:
    if pinned is None or asked is None or release(asked.value) is not None:
        return asked
    pin, allowed = release(pinned.value), parse(asked.value)
    return pinned if pin is not None and allowed is not None and pin in allowed else asked
