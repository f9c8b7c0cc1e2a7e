"""Arguments of a script's own: what argparse and dataclasses say they are by default, and what a launcher gives."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trainlint.formats import Fragment
from trainlint.run import TrainingRun
from trainlint.session import Request, open_session
from trainlint.settings import nearest

from .drafting import fragment

ARGPARSE = """\
import argparse
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="Qwen/Qwen2.5-7B")
    parser.add_argument("--batch-size", "-b", type=int, default=8)
    parser.add_argument("--lr", type=float, default=2e-5)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--clip", type=float, default=0.5)
    return parser.parse_args()


def main(args):
    args.clip = 2 * args.clip
    model = AutoModelForCausalLM.from_pretrained(args.model)
    config = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=args.batch_size,
        gradient_accumulation_steps=32 // args.batch_size,
        learning_rate=args.lr,
        max_steps=args.steps,
        seed=args.seed,
        bf16=args.bf16,
        max_grad_norm=args.clip,
    )
    Trainer(model=model, args=config, train_dataset=None).train()


if __name__ == "__main__":
    args = parse_args()
    main(args)
"""


def read(text: str) -> Fragment:
    return fragment(text, "train.py")


def values(found: Fragment) -> dict[str, object]:
    return {path: value.value for path, value in found.values.items()}


def test_defaults_of_argparse() -> None:
    found = read(ARGPARSE)
    said = values(found)
    assert said["model.id"] == "Qwen/Qwen2.5-7B"
    assert said["batch.micro"] == 8
    assert said["batch.accumulation"] == 4
    assert said["optimizer.lr"] == 2e-5
    for path in ("schedule.max_steps", "seed", "precision.bf16", "clip"):
        assert path not in said, path
    place = found.values["batch.micro"].place
    assert place is not None
    assert (place.line, found.values["batch.micro"].raw) == (8, "8")


@pytest.mark.parametrize(
    "change",
    [
        ("args = parse_args()", "args = parse_args()\n    args = tweak(args)"),
        ("    main(args)", "    setattr(args, name, 1)\n    main(args)"),
        (
            'parser.add_argument("--lr", type=float, default=2e-5)',
            'parser.add_argument("--lr", type=float, required=True)',
        ),
        ("    return parser", '    other.add_argument("--lr", default=1.0)\n    return parser'),
    ],
)
def test_what_is_not_certain_is_not_followed(change: tuple[str, str]) -> None:
    assert change[0] in ARGPARSE
    assert "optimizer.lr" not in values(read(ARGPARSE.replace(*change)))


DATACLASS = """\
from dataclasses import dataclass, field
from transformers import HfArgumentParser
from trl import SFTConfig, SFTTrainer


@dataclass
class Common:
    lr: float = field(default=1e-4, metadata={"help": "rate"})


@dataclass
class ScriptArguments(Common):
    model_name: str = "Qwen/Qwen2.5-7B"
    length: int = field(default=2048)
    rank: int = field(default_factory=lambda: 16)
    steps: int = field(metadata={"help": "no default"})


parser = HfArgumentParser(ScriptArguments)
script_args = parser.parse_args_into_dataclasses()[0]
config = SFTConfig(
    output_dir="out", learning_rate=script_args.lr, max_length=script_args.length, max_steps=script_args.steps
)
SFTTrainer(model=script_args.model_name, args=config, train_dataset=None).train()
"""


def test_defaults_of_dataclasses() -> None:
    said = values(read(DATACLASS))
    assert (said["optimizer.lr"], said["length.max"], said["model.id"]) == (1e-4, 2048, "Qwen/Qwen2.5-7B")
    assert "schedule.max_steps" not in said


@pytest.mark.parametrize(
    "holder",
    [
        "script_args, rest = HfArgumentParser((ScriptArguments, Common)).parse_args_into_dataclasses()",
        "script_args = tyro.cli(ScriptArguments)",
        "script_args = ScriptArguments()",
    ],
)
def test_further_ways_to_hold_arguments(holder: str) -> None:
    lines = DATACLASS.replace("script_args = parser.parse_args_into_dataclasses()[0]", holder)
    if "HfArgumentParser((" in holder:
        lines = lines.replace("HfArgumentParser(ScriptArguments)", "HfArgumentParser((ScriptArguments, Common))")
        lines = lines.replace(holder, "script_args, rest = parser.parse_args_into_dataclasses()")
    assert values(read(lines))["length.max"] == 2048


def test_an_instance_that_is_given_values_is_not_followed() -> None:
    text = DATACLASS.replace("parser.parse_args_into_dataclasses()[0]", "ScriptArguments(length=4096)")
    assert "length.max" not in values(read(text))


SUBCLASS = """\
from dataclasses import dataclass, field
import transformers


@dataclass
class TrainArgs(transformers.TrainingArguments):
    optim: str = field(default="adamw_torch")
    gradient_checkpointing: bool = field(default=True)
    cache_dir: str = field(default=None)


"""


def test_fields_of_an_own_subclass_are_its_defaults() -> None:
    made = SUBCLASS + 'config = TrainArgs(output_dir="out", optim="adafactor")\n'
    made += "transformers.Trainer(model=model, args=config).train()\n"
    said = values(read(made))
    assert said["optimizer.name"] == "adafactor"
    assert said["checkpointing.kind"] == "full"


PARSED = (
    SUBCLASS
    + """\
parser = transformers.HfArgumentParser(TrainArgs)
(config,) = parser.parse_args_into_dataclasses()
transformers.Trainer(model=model, args=config).train()
"""
)


def test_an_own_subclass_that_is_parsed() -> None:
    said = values(read(PARSED))
    assert (said["optimizer.name"], said["checkpointing.kind"]) == ("adamw_torch", "full")


def launched(folder: Path, script: str, command: str) -> TrainingRun:
    (folder / "train.py").write_text(script)
    (folder / "run.sh").write_text(command + "\n")
    nearest.cache_clear()
    (run,) = [found.run for found in open_session(Request(paths=(str(folder),))).runs if found.fragments[0].launches]
    return run


def test_a_launcher_gives_arguments(tmp_path: Path) -> None:
    run = launched(tmp_path, ARGPARSE, "python train.py --batch-size 4 --bf16 --model a/b")
    found = {path: value.value for path, value in run.values.items()}
    assert (found["batch.micro"], found["model.id"], found["precision.bf16"]) == (4, "a/b", True)
    assert "batch.accumulation" not in found  # computed from what is given
    assert found["optimizer.lr"] == 2e-5
    micro = run.batch.micro
    assert micro is not None
    assert micro.place is not None
    assert (Path(micro.place.file).name, micro.key) == ("run.sh", "--batch-size")
    assert [(loser.value, loser.note) for loser in micro.losers] == [(8, "the script's default")]


def test_a_switch_is_off_where_a_launcher_does_not_give_it(tmp_path: Path) -> None:
    run = launched(tmp_path, ARGPARSE, "python train.py --lr 1e-4")
    assert run.precision.bf16 is not None
    assert (run.precision.bf16.value, run.precision.bf16.note) == (False, "`--bf16` is not given")
    assert run.optimizer.lr is not None
    assert run.optimizer.lr.value == 1e-4
    run = launched(tmp_path, ARGPARSE, "python train.py $EXTRA")
    assert run.precision.bf16 is None


def test_an_argument_that_only_the_run_decides(tmp_path: Path) -> None:
    run = launched(tmp_path, ARGPARSE, 'python train.py --lr "$LR"')
    assert run.optimizer.lr is None


def test_defaults_of_a_subclass_count_below_the_command_line(tmp_path: Path) -> None:
    command = "torchrun --nproc_per_node 2 train.py --per_device_train_batch_size 4 --output_dir out --optim adafactor"
    run = launched(tmp_path, PARSED, command)
    assert run.optimizer.name is not None
    assert run.optimizer.name.value == "adafactor"
    assert run.checkpointing.kind is not None
    assert run.checkpointing.kind.value == "full"


def test_deep_classes_end() -> None:
    text = "".join(f"@dataclass\nclass A{n}(A{n + 1}):\n    x: int = {n}\n" for n in range(300))
    text += "@dataclass\nclass A300(A0):\n    pass\n"
    assert sys.getrecursionlimit() >= 1000
    read(DATACLASS + text)
