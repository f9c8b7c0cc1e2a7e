"""The JSON of `estimate`, as the command prints it."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from trainlint.cli import main

TRAIN = """\
model_name_or_path: meta-llama/Llama-3.1-8B
per_device_train_batch_size: 1
max_length: 1024
output_dir: runs/a
bf16: true
"""


@pytest.mark.parametrize(
    "text",
    [TRAIN, TRAIN.replace("meta-llama/Llama-3.1-8B", "somebody/nobody-knows"), "a: 1\n"],
    ids=["known", "unknown", "none"],
)
@pytest.mark.parametrize("settings", ['device = "RTX 4090"\n', ""], ids=["device", "no device"])
def test_estimate_is_what_its_schema_says(
    text: str, settings: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.yaml").write_text(text)
    (tmp_path / "trainlint.toml").write_text(settings)
    monkeypatch.chdir(tmp_path)
    main(["estimate", "--output-format", "json"])
    said = json.loads(capsys.readouterr().out)
    schema = json.loads(files("trainlint_schemas").joinpath("report.schema.json").read_text("utf-8"))
    jsonschema.validate(said, schema, jsonschema.Draft202012Validator)
    assert len(said["runs"]) == ("model" in text)
