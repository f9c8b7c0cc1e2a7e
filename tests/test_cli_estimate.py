"""`trainlint estimate` with other values: what is asked for, what follows from it, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from trainlint.cli import main
from trainlint.errors import TrainlintError
from trainlint.resolve.variant import assignments, completed, values_of
from trainlint.run import TrainingRun, Value, build

TRAIN = """\
# trainlint: device=RTX 4090:8
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
per_device_train_batch_size: 4
gradient_accumulation_steps: 2
max_length: 1024
dtype: bfloat16
bf16: true
assistant_only_loss: true
output_dir: out
"""

Line = Callable[..., tuple[int, str, str]]


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Line:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.yaml").write_text(TRAIN)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return run


def run_of(**values: object) -> TrainingRun:
    return build("a.yaml", "trl", (), {path.replace("__", "."): Value(value) for path, value in values.items()})


def test_set_estimates_the_changed_run(line: Line) -> None:
    code, out, _ = line("estimate", "--set", "method=qlora", "--set", "batch.micro=1", "--output-format", "json")
    (run,) = json.loads(out)["runs"]
    assert code == 0
    assert run["variant"] == {"method": "qlora", "batch.micro": 1}
    assert any(entry["entry"] == "quantized weights" for entry in run["ledger"])


def test_compare_sets_it_beside_the_run(line: Line) -> None:
    code, out, _ = line("estimate", "--compare", "--set", "checkpointing=true", "--variant", "sharding.kind=zero3")
    assert code == 1
    assert [text[:1] for text in out.splitlines()[:3]] == ["A", "B", "C"]
    assert "with checkpointing.kind=full" in out
    assert "with sharding.kind=zero3" in out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("batch.micro", "is no assignment"),
        ("batch.micr=1", "did you mean `batch.micro`"),
        ("batch.micro=much", "`batch.micro` is a number of samples"),
        ("batch.micro=0.5", "a whole number"),
        ("precision.weights=bf8", "one of float32"),
        ("batch.micro=[", "is no assignment"),
        ("model.id=nobody/knows-this", "no model `nobody/knows-this`"),
        ("device.name=Abacus 2", "no device `Abacus 2`"),
    ],
)
def test_what_no_run_has_is_refused(text: str, message: str, line: Line) -> None:
    code, out, err = line("estimate", "--set", text)
    assert (code, out) == (2, "")
    assert message in err


def test_a_value_may_hold_commas() -> None:
    assert assignments("adapter.targets=q_proj,v_proj,batch.micro=1") == (
        "adapter.targets=q_proj,v_proj",
        "batch.micro=1",
    )
    assert values_of(["device.memory=24 GiB", "length.packing=true"]) == {
        "device.memory": 24 << 30,
        "length.packing": True,
    }


def test_what_follows_is_filled_in() -> None:
    run = run_of(method="full", device__count=4)
    made = completed(run, {"sharding.kind": "zero3", "method": "qlora", "kernels": "liger", "device.name": "A100 80GB"})
    assert made["parallel.data"] == 4
    assert made["quantization.bits"] == 4
    assert made["loss"] == "liger"
    assert made["device.memory"] == made["device.memory_high"]
    smaller = completed(run, {"model.id": "Qwen/Qwen2.5-0.5B"})
    assert smaller["model.parameters"] == 494032768


def test_a_value_that_is_no_pair_is_an_error() -> None:
    with pytest.raises(TrainlintError, match="no assignment"):
        values_of(["=1"])


def test_sharding_is_offered_in_words_where_it_is_set_elsewhere(line: Line) -> None:
    _, out, _ = line("estimate", "--fit", "--output-format", "json")
    (run,) = json.loads(out)["runs"]
    changes = [one["changes"] for one in run["fit"]]
    assert any(change.get("sharding.kind") == "zero3" for change in changes)
    assert "shard with ZeRO-3 or FSDP over the 8 devices" in line("estimate", "--fit")[1]


def test_a_fix_writes_the_first_change(tmp_path: Path, line: Line) -> None:
    (tmp_path / "train.yaml").write_text(TRAIN.replace(":8", ":1"))
    _, before, _ = line("check", "--select", "memory-exceeds-device")
    assert "help: set `" in before
    code, _, _ = line("check", "--select", "memory-exceeds-device", "--fix", "--unsafe-fixes")
    assert code == 0
    text = (tmp_path / "train.yaml").read_text()
    assert "use_peft: true\n" in text
    assert text.count("\n") >= TRAIN.count("\n") + 1


MLX = """model: "mlx-community/Llama-3.2-3B-Instruct-bf16"
train: true
data: data
fine_tune_type: lora
batch_size: 16
max_seq_length: 4096
iters: 10
grad_checkpoint: false"""


def fixed(folder: Path, name: str, text: str, device: str) -> str:
    (folder / "train.yaml").unlink()
    (folder / name).write_text(text)
    main(["check", "--device-memory", device, "--select", "memory-exceeds-device", "--fix", "--unsafe-fixes", name])
    return (folder / name).read_text()


def test_a_written_value_is_replaced_where_it_stands(tmp_path: Path, line: Line) -> None:
    arguments = json.dumps(
        {
            "model_name_or_path": "Qwen/Qwen2.5-1.5B-Instruct",
            "per_device_train_batch_size": 64,
            "gradient_accumulation_steps": 1,
            "gradient_checkpointing": True,
            "max_length": 4096,
            "dtype": "bfloat16",
            "bf16": True,
            "packing": True,
            "assistant_only_loss": True,
            "output_dir": "out",
        },
        indent=1,
    )
    (tmp_path / "requirements.txt").write_text("trl==1.2.0\ntransformers==5.4.0\ntorch==2.9.0\n")
    made = json.loads(fixed(tmp_path, "args.json", arguments, "24 GiB"))
    assert made["per_device_train_batch_size"] < 64
    assert made["per_device_train_batch_size"] * made["gradient_accumulation_steps"] == 64


def test_nothing_is_added_below_a_last_line_without_an_end(tmp_path: Path, line: Line) -> None:
    made = fixed(tmp_path, "lora.yaml", MLX, "20 GiB")
    assert made.startswith(MLX.split("batch_size")[0])
    assert "grad_checkpoint: falsegrad" not in made
