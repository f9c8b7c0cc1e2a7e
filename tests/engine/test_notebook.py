"""A notebook is linted as a script; findings, fixes and `show` stand at the places of its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainlint.cli import main
from trainlint.settings import nearest

CELLS = (
    ["!pip install trl==0.19.1 transformers==4.53.0"],
    [
        "from trl import SFTConfig, SFTTrainer\n",
        "args = SFTConfig(\n",
        '\toutput_dir="out", fp16=True, bf16=True,  # "both"\n',
        ")\n",
        'trainer = SFTTrainer(model="meta-llama/Llama-3.1-8B", args=args, train_dataset=data)\n',
        "trainer.train()",
    ],
)


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    nearest.cache_clear()
    path = tmp_path / "train.ipynb"
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": source} for source in CELLS]
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1))
    return path


def test_findings_stand_in_the_file_and_name_the_cell(train: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--select", "precision-fp16-and-bf16"]) == 1
    said = capsys.readouterr().out.splitlines()
    line = next(number for number, text in enumerate(train.read_text().split("\n"), 1) if "bf16=True" in text)
    column = train.read_text().split("\n")[line - 1].index("bf16=True") + 6
    assert said[0].startswith(f"train.ipynb:{line}:{column}: error: ")
    assert said[0].endswith(", in cell 2 [precision-fp16-and-bf16]")
    assert said[1] == f'   |  {line} |     output_dir="out", fp16=True, bf16=True,  # "both"'
    assert said[2].index("^") == said[1].index("True,  #")


def test_fixes_keep_the_notebook_a_notebook(train: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = json.loads(train.read_text())
    assert main(["--select", "precision-fp16-and-bf16", "--fix", "--unsafe-fixes"]) == 0
    capsys.readouterr()
    after = json.loads(train.read_text())
    before["cells"][1]["source"][2] = before["cells"][1]["source"][2].replace("fp16=True", "fp16=False", 1)
    assert after == before


def test_comments_silence_in_cells(train: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train.write_text(train.read_text().replace('# \\"both\\"', "# trainlint: ignore[precision-fp16-and-bf16] a test"))
    assert main(["--select", "precision-fp16-and-bf16,suppression"]) == 0
    assert capsys.readouterr().out == ""


def test_show_names_cells_and_what_they_install(train: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--output-format", "json", "--only", "versions,precision.fp16"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    values = {value["path"]: value for value in run["values"]}
    assert (values["versions.trl"]["value"], values["versions.trl"]["location"]["cell"]) == ("0.19.1", 1)
    place = values["precision.fp16"]["location"]
    assert train.read_text().split("\n")[place["line"] - 1][place["column"] - 1 :].startswith("True, bf16")
    assert place["cell"] == 2
