"""How long a run trains, and what its checkpoints take."""

from __future__ import annotations

import pytest

from .runs import Folder, folder, value

__all__ = ["folder"]

ARGUMENTS = """\
model_name_or_path: gpt2
output_dir: out
per_device_train_batch_size: 4
gradient_accumulation_steps: 2
learning_rate: 2.0e-5
"""
FACTORY = """\
stage: sft
do_train: true
model_name_or_path: gpt2
finetuning_type: full
dataset: one,two
template: default
output_dir: out
"""


def test_the_steps_that_are_asked_for(folder: Folder) -> None:
    folder.file("train.yaml", ARGUMENTS + "max_steps: 70\nnum_train_epochs: 3\n")
    assert value(folder.run(), "schedule.total_steps") == 70


@pytest.mark.parametrize(("devices", "steps"), [("", 375), ("devices = 1\n", 375), ("devices = 4\n", 96)])
def test_the_steps_that_the_data_give(folder: Folder, devices: str, steps: int) -> None:
    folder.file("train.yaml", ARGUMENTS + "num_train_epochs: 3\n")
    folder.file("trainlint.toml", devices + "data = { rows = 1000 }\n")
    assert value(folder.run(), "schedule.total_steps") == steps


def test_packing_leaves_the_steps_open(folder: Folder) -> None:
    folder.file("train.yaml", ARGUMENTS + "num_train_epochs: 3\npacking: true\n")
    folder.file("trainlint.toml", "data = { rows = 1000 }\n")
    assert value(folder.run(), "schedule.total_steps") is None


def test_samples_are_limited_by_data_set(folder: Folder) -> None:
    folder.file("train.yaml", FACTORY + "max_samples: 100\nnum_train_epochs: 2\nper_device_train_batch_size: 10\n")
    assert value(folder.run(), "schedule.total_steps") == 40


@pytest.mark.parametrize(
    ("more", "each"), [("bf16: true\n", 12), ("bf16: true\nsave_only_model: true\n", 4), ("pure_bf16: true\n", 6)]
)
def test_a_checkpoint_holds_weights_and_states(folder: Folder, more: str, each: int) -> None:
    folder.file("train.yaml", FACTORY + more)
    run = folder.run()
    assert run.model.parameters is not None
    assert value(run, "checkpoint.bytes") == each * run.model.parameters.value


def test_adapters_are_not_counted(folder: Folder) -> None:
    folder.file("train.yaml", FACTORY.replace("full", "lora") + "bf16: true\n")
    assert value(folder.run(), "checkpoint.bytes") is None


def test_the_list_of_data_sets(folder: Folder) -> None:
    folder.file("configs/train.yaml", FACTORY)
    folder.file("data/dataset_info.json", '{"one": {}, "three": {}}')
    assert value(folder.run(), "data.registered") == ("one", "three")


def test_the_chat_template(folder: Folder) -> None:
    folder.file("train.yaml", ARGUMENTS + "assistant_only_loss: true\nchat_template_path: ours.jinja\n")
    folder.file("ours.jinja", "{% for m in messages %}{% endfor %}")
    assert value(folder.run(), "model.chat_template") == "{% for m in messages %}{% endfor %}"
