"""Runs resolved from the files of a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainlint.resolve import Resolved
from trainlint.run import TrainingRun
from trainlint.session import Request, open_session
from trainlint.settings import Settings, nearest


class Folder:
    """A folder in which one stands."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        monkeypatch.chdir(path)

    def write(self, **files: str) -> None:
        """Files by name, `/` written as `__` and `.` as a last `_`."""
        for name, text in files.items():
            stem, _, ending = name.replace("__", "/").rpartition("_")
            self.file(f"{stem}.{ending}", text)

    def file(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def resolved(self, *paths: str, **asked: object) -> list[Resolved]:
        nearest.cache_clear()
        settings = Settings(**asked, given=frozenset(asked))  # type: ignore[arg-type]
        return open_session(Request(paths=paths or (".",), asked=settings)).runs

    def run(self, *paths: str, **asked: object) -> TrainingRun:
        """The one run that something starts."""
        runs = [found.run for found in self.resolved(*paths, **asked) if found.fragments[0].launches]
        assert len(runs) == 1, [run.root for run in runs]
        return runs[0]

    def members(self, *paths: str) -> list[tuple[str, ...]]:
        return [found.run.files for found in self.resolved(*paths)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    return Folder(tmp_path / "project", monkeypatch)


def value(run: TrainingRun, path: str) -> object:
    """The bare value at a path."""
    found = run.get(path)
    return None if found is None else found.value
