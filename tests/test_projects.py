"""Whole runs: a launcher, accelerate, a trainer, an engine, a model, versions, and every value that they make."""

from __future__ import annotations

import json
import shutil
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from trainlint.cli import main
from trainlint.settings import nearest

PROJECTS = Path(__file__).parent / "projects"
NAMES = sorted(path.name for path in PROJECTS.iterdir() if path.is_dir())


@pytest.mark.parametrize("name", NAMES)
def test_a_run_over_several_files(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    folder = tmp_path / name
    shutil.copytree(PROJECTS / name, folder)
    (folder / ".git").mkdir()
    monkeypatch.chdir(folder)
    nearest.cache_clear()
    assert main(["show", "--output-format", "json"]) == 0
    said = capsys.readouterr().out
    schema = json.loads(files("trainlint_schemas").joinpath("report.schema.json").read_text("utf-8"))
    jsonschema.validate(json.loads(said), schema, jsonschema.Draft202012Validator)
    expected = PROJECTS / f"{name}.json"
    if request.config.getoption("--update-pages"):
        expected.write_text(said, "utf-8")
    assert json.loads(said) == json.loads(expected.read_text("utf-8"))
