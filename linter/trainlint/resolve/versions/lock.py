"""Lock files: uv, poetry, pdm, PEP 751, Pipenv. Of a package that is locked in several releases nothing is said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from trainlint.documents import Place
from trainlint.resolve.versions.requirement import PACKAGES, Said, package, read, shown
from trainlint.run import Value

LOCKS = frozenset(("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml", "Pipfile.lock"))
_LOCKED = re.compile(r'^name = "(?P<name>[\w.-]+)"\nversion = "(?P<version>[\w.+!-]+)"', re.MULTILINE)
_PIPENV = re.compile(r'"(?P<name>[\w.-]+)": \{[^{}]*?"version": "===?(?P<version>[\w.+!-]+)"')


def locked(path: Path) -> Iterator[Said]:
    """The packages that a lock file holds."""
    text = read(path)
    pipenv = path.name == "Pipfile.lock"
    if pipenv:
        text = text.partition('"develop":')[0]
    found: dict[str, list[re.Match[str]]] = {}
    for match in (_PIPENV if pipenv else _LOCKED).finditer(text):
        name = package(match["name"])
        if name in PACKAGES:
            found.setdefault(name, []).append(match)
    for name, matches in found.items():
        if len({match["version"].partition("+")[0] for match in matches}) == 1:
            begin, end = matches[0].span("version")
            line, column = text.count("\n", 0, begin) + 1, begin - text.rfind("\n", 0, begin)
            place = Place(shown(path), line, column, line, column + end - begin)
            said = matches[0]["version"]
            yield name, Value(said, "written", name, place, said, file_format="lock")
