"""Small projects of files with rules of their own, linted in place without the built-in rules."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from trainlint import plugins
from trainlint.engine import check
from trainlint.result import Result
from trainlint.session import Request
from trainlint.settings import Settings, nearest

RUN = "trainlint: run\nbatch: {micro: 2}\n"
BASE_RULE = "severity: info\non: file\nflag: {key: never-written, known: true}\nmessage: never\n"


class Project:
    """A folder in which one stands, with rules under `rules/<family>/`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.rules = folder.parent / "rules"
        self.write({"base/base-silent.rule.yaml": BASE_RULE}, self.rules)
        monkeypatch.chdir(folder)
        monkeypatch.setattr(plugins, "load", lambda: None)
        monkeypatch.setattr(plugins, "offered", self.offered)
        nearest.cache_clear()

    def offered(self, manager: object, hook: str) -> list[object]:
        return [self.rules] if hook == "trainlint_rules" else []

    def write(self, files: Mapping[str, str], folder: Path | None = None) -> None:
        for name, text in files.items():
            path = (folder or self.folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        nearest.cache_clear()

    def rule(self, name: str, text: str, ending: str = ".rule.yaml") -> None:
        self.write({f"{name.partition('-')[0]}/{name}{ending}": text}, self.rules)

    def check(self, *paths: str, **asked: object) -> Result:
        settings = Settings(**asked, given=frozenset(asked))  # type: ignore[arg-type]
        return check(Request(paths=paths or (".",), asked=settings))[0]

    def said(self, *paths: str, **asked: object) -> list[str]:
        return [
            f"{found.place.file}:{found.place.line}:{found.place.column}: {found.severity}: {found.message} [{found.rule}]"  # noqa: E501
            for found in self.check(*paths, **asked).findings
        ]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "project").mkdir()
    return Project(tmp_path / "project", monkeypatch)
