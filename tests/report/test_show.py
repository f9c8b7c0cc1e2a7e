"""What `show` prints: files with their reasons, values with their origins, what is open."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from trainlint.cli import main

TRAIN = """\
model_name_or_path: Qwen/Qwen2.5-7B
per_device_train_batch_size: 4
gradient_accumulation_steps: 2
bf16: true
deepspeed: zero2.json
output_dir: out
"""
ZERO = '{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 8, "bf16": {"enabled": "auto"}}\n'
ACCELERATE = (
    "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nmixed_precision: fp16\nnum_processes: 4\n"
)
PROJECT = {
    "train.yaml": TRAIN,
    "zero2.json": ZERO,
    "accelerate.yaml": ACCELERATE,
    "run.sh": "accelerate launch --config_file accelerate.yaml --num_processes 8 train.py --config train.yaml\n",
    "requirements.txt": "transformers==4.50.0\n",
    "trainlint.toml": 'device = "RTX 4090"\n',
}


def shown(
    project: dict[str, str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *arguments: str,
) -> str:
    for name, text in project.items():
        (folder / name).write_text(text)
    monkeypatch.chdir(folder)
    assert main(["show", *arguments]) == 0
    return capsys.readouterr().out


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    """The one run of the project."""
    found = json.loads(shown(PROJECT, tmp_path, monkeypatch, capsys, "--output-format", "json"))
    schema = json.loads(files("trainlint_schemas").joinpath("report.schema.json").read_text("utf-8"))
    jsonschema.validate(found, schema, jsonschema.Draft202012Validator)
    (run,) = found["runs"]
    return run  # type: ignore[no-any-return]


def row(run: dict[str, object], path: str) -> dict[str, object]:
    values = run["values"]
    assert isinstance(values, list)
    (found,) = [value for value in values if value["path"] == path]
    return found  # type: ignore[no-any-return]


def test_files_say_why_they_belong_to_the_run(said: dict[str, object]) -> None:
    members = said["files"]
    assert isinstance(members, list)
    assert [(one["file"], one["how"], one["by"], one["key"]) for one in members] == [
        ("train.yaml", "root", None, None),
        ("run.sh", "starts", "train.yaml", "accelerate"),
        ("zero2.json", "named", "train.yaml", "deepspeed"),
        ("accelerate.yaml", "named", "run.sh", "--config_file"),
        ("trainlint.toml", "settings", None, None),
        ("requirements.txt", "versions", None, None),
    ]
    assert (members[2]["location"]["file"], members[2]["location"]["line"]) == ("train.yaml", 5)


def test_values_say_where_they_come_from(said: dict[str, object]) -> None:
    micro = row(said, "batch.micro")
    assert (micro["value"], micro["unit"], micro["origin"], micro["raw"]) == (4, "sample", "written", "4")
    assert micro["location"] == {"file": "train.yaml", "line": 2, "column": 30, "end_line": 2, "end_column": 31}
    assert row(said, "optimizer.name")["note"] == "transformers >=4.32"
    assert row(said, "precision.master")["origin"] == "derived"
    assert row(said, "method")["origin"] == "assumed"


def test_losers_stand_with_their_places_and_reasons(said: dict[str, object]) -> None:
    def lost(path: str) -> list[tuple[object, object, object]]:
        losers = row(said, path)["losers"]
        assert isinstance(losers, list)
        return [(one["value"], f"{one['location']['file']}:{one['location']['line']}", one["why"]) for one in losers]

    stops = "the Trainer stops where DeepSpeed's value is another than its own, unless it is `auto`"
    assert lost("batch.micro") == [(8, "zero2.json:1", stops)]
    assert lost("parallel.world") == [(4, "accelerate.yaml:4", "the command line wins over the accelerate config")]
    assert lost("precision.compute") == [("fp16", "accelerate.yaml:3", "`bf16` of the trainer wins over the launcher")]


def test_every_path_is_known_open_or_unknown(said: dict[str, object]) -> None:
    from trainlint.run import paths

    values, possible, unknown = said["values"], said["possible"], said["unknown"]
    assert isinstance(values, list)
    assert isinstance(possible, list)
    assert isinstance(unknown, list)
    known = [value["path"] for value in values]
    assert [path for path in known if path in paths()] == [path for path in paths() if path in known]
    assert {*known, *(one["path"] for one in possible), *unknown} >= set(paths())


OPEN = {"train.yaml": TRAIN.replace("deepspeed: zero2.json\n", "")}


def test_what_is_open_says_what_would_settle_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(OPEN, tmp_path, monkeypatch, capsys)
    assert "  precision.weights: open: float32 (transformers <5) or bfloat16" in text
    assert "pin `transformers`" in text
    assert "  device.name: unknown: name the `device` in the settings, or with `--device`\n" in text


def test_only_some_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(OPEN, tmp_path, monkeypatch, capsys, "--only", "batch,precision.b*", "--only=seed")
    assert {line.split()[0].partition(".")[0] for line in text.splitlines()[1:]} == {"seed", "batch", "precision"}
    assert "precision.fp16" not in text


def test_a_part_of_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown({"zero2.json": ZERO}, tmp_path, monkeypatch, capsys)
    assert text.startswith("zero2.json  deepspeed, starts no run\n")
    assert "unknown" not in text


def test_nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown({"a.yaml": "a: 1\n"}, tmp_path, monkeypatch, capsys) == "no training config here\n"
    assert json.loads(shown({}, tmp_path, monkeypatch, capsys, "--output-format", "json")) == {"version": 1, "runs": []}
