"""Python projects: `pyproject.toml` (PEP 621, poetry, uv, pixi), `Pipfile`, `setup.cfg`, `setup.py`.

What optional groups ask for counts where the project's own dependencies are silent and the groups agree.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from trainlint.documents import Mapping, Node, Place, Scalar, Sequence, from_text
from trainlint.resolve.versions.requirement import PACKAGES, Said, lines, once, package, read, requirement, shown
from trainlint.resolve.versions.requirement import version as said_version
from trainlint.run import Value

FORMAT = "project"


@cache
def _names() -> re.Pattern[str]:
    """A package with something behind it that may say its version: a file without is not parsed."""
    names = "|".join(name.replace("-", "[-_.]") for name in sorted(PACKAGES))
    return re.compile(rf"\b(?:{names})(?:\[[^\]\n]*\])?[\"']?\s*[=<>~!@(\]]", re.IGNORECASE)


def pyproject(path: Path) -> Iterator[Said]:
    """What a `pyproject.toml` asks for."""
    root = _toml(path)
    if root is None:
        return
    yield from _groups(
        [
            *_texts(root.find("project.optional-dependencies")),
            *_texts(root.find("dependency-groups")),
            *_texts(root.find("tool.pdm.dev-dependencies")),
            *(_table(group.get("dependencies")) for group in _tables(root.find("tool.poetry.group"))),
            _table(root.find("tool.poetry.dev-dependencies")),
            _table(root.find("tool.poetry.dependencies"), optional=True),
        ]
    )
    yield from _listed(root.find("project.dependencies"))
    for name in ("tool.poetry.dependencies", "tool.pixi.dependencies", "tool.pixi.pypi-dependencies"):
        yield from _table(root.find(name))
    for name in ("constraint-dependencies", "override-dependencies"):
        yield from _listed(root.find(f"tool.uv.{name}"))


def pipfile(path: Path) -> Iterator[Said]:
    """What a `Pipfile` asks for."""
    root = _toml(path)
    if root is not None:
        yield from _groups([_table(root.get("dev-packages"))])
        yield from _table(root.get("packages"))


def setup_cfg(path: Path) -> Iterator[Said]:
    """The `install_requires` of a `setup.cfg`."""
    section, listing = "", False
    for number, line in lines(path):
        text = line.strip()
        if text.startswith("["):
            section, listing = text.strip("[]"), False
        elif line[:1].strip() and not text.startswith("#"):
            key, equals, rest = line.partition("=")
            listing = section == "options" and key.strip() == "install_requires" and bool(equals)
            text = rest.strip() if listing else ""
        if listing and text:
            column = line.index(text) + 1
            place = Place(shown(path), number, column, number, column + len(text))
            yield from _one(requirement(place, text, FORMAT))


def setup_py(path: Path) -> Iterator[Said]:
    """The `install_requires` of a `setup.py`, where it is a list of texts, or a name bound to one."""
    text = read(path)
    if "install_requires" not in text or not _names().search(text):
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    bound = {
        target.id: node.value
        for node in ast.walk(module)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(module):
        if not isinstance(node, ast.keyword) or node.arg != "install_requires":
            continue
        value = bound.get(node.value.id) if isinstance(node.value, ast.Name) else node.value
        for item in value.elts if isinstance(value, ast.List | ast.Tuple) else ():
            if isinstance(item, ast.Constant) and isinstance(item.value, str):
                column = item.col_offset + 2
                place = Place(shown(path), item.lineno, column, item.lineno, column + len(item.value))
                yield from _one(requirement(place, item.value, FORMAT))


def _toml(path: Path) -> Mapping | None:
    """The table of a TOML file that names one of the packages."""
    text = read(path)
    if not _names().search(text):
        return None
    roots = from_text(shown(path), text, "toml").roots
    return roots[0] if roots and isinstance(roots[0], Mapping) else None


def _tables(node: Node | None) -> Iterator[Mapping]:
    """The tables below a table."""
    for entry in node.entries if isinstance(node, Mapping) else ():
        if isinstance(entry.value, Mapping):
            yield entry.value


def _texts(node: Node | None) -> Iterator[Iterable[Said]]:
    """What each list of a table of lists asks for."""
    for entry in node.entries if isinstance(node, Mapping) else ():
        yield _listed(entry.value)


def _listed(node: Node | None) -> Iterator[Said]:
    said: list[Said] = []
    for item in node.items if isinstance(node, Sequence) else ():
        if isinstance(item, Scalar) and isinstance(item.value, str):
            place = item.place._replace(column=item.place.column + 1)
            said += _one(requirement(place, item.value, FORMAT))
    yield from once(said)


def _table(node: Node | None, optional: bool = False) -> Iterator[Said]:
    """A table of packages: `transformers = "^4.44"`, `trl = {version = "0.9.6"}`; those that are `optional`, or the
    others.
    """
    for entry in node.entries if isinstance(node, Mapping) else ():
        name = package(entry.name)
        flag = entry.value.get("optional") if isinstance(entry.value, Mapping) else None
        if name not in PACKAGES or (isinstance(flag, Scalar) and flag.value is True) != optional:
            continue
        asked = entry.value.get("version") if isinstance(entry.value, Mapping) else entry.value
        if isinstance(asked, Scalar) and isinstance(asked.value, str):
            spec = re.sub(r"\s+", "", asked.value)
            if spec not in ("", "*") and "://" not in spec:
                yield name, said_version(asked.place, name, spec, FORMAT)
        elif isinstance(entry.value, Mapping) and {"git", "url", "path"} & entry.value.names():
            yield name, _tagged(name, entry.value)


def _tagged(name: str, source: Mapping) -> Value[str] | None:
    tag = source.get("tag")
    if isinstance(tag, Scalar) and isinstance(tag.value, str) and re.fullmatch(r"v?\d+(\.\d+)+", tag.value):
        return Value(tag.value.removeprefix("v"), "written", name, tag.place, tag.value, file_format=FORMAT)
    return None


def _groups(groups: Iterable[Iterable[Said]]) -> Iterator[Said]:
    """What optional groups ask for, where they agree."""
    asked: dict[str, list[Value[str] | None]] = {}
    for group in groups:
        for name, value in group:
            asked.setdefault(name, []).append(value)
    for name, values in asked.items():
        if len({None if value is None else value.value for value in values}) == 1 and values[0] is not None:
            yield name, values[0]


def _one(said: Said | None) -> Iterator[Said]:
    if said is not None:
        yield said


READERS = {"setup.py": setup_py, "setup.cfg": setup_cfg, "Pipfile": pipfile, "pyproject.toml": pyproject}
"""By the file's name, from what gives way to what wins."""
