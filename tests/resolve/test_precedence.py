"""Who counts where accelerate, the Trainer, DeepSpeed, launchers and the environment say one thing."""

from __future__ import annotations

import pytest

from trainlint.run import TrainingRun

from .runs import Folder, folder, value

__all__ = ["folder"]

TRAINER = "model_name_or_path: a/b\noutput_dir: out\nper_device_train_batch_size: 4\nlearning_rate: 1.0e-5\n"
ACCELERATE = "compute_environment: LOCAL_MACHINE\nnum_processes: 4\n"
PLAIN = ACCELERATE + "distributed_type: MULTI_GPU\nmixed_precision: fp16\n"
ENGINE = ACCELERATE + (
    "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n  gradient_accumulation_steps: 8\n"
    "  offload_optimizer_device: none\n"
)
ZERO2 = '{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, "train_batch_size": "auto"}'
LOOP = """\
from accelerate import Accelerator
from torch.optim import AdamW

accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
optimizer = AdamW(model.parameters(), lr=1e-5)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for batch in loader:
    with accelerator.accumulate(model):
        loss = model(**batch).loss
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
"""


def lost(run: TrainingRun, path: str) -> list[tuple[object, str, str]]:
    """Values that do not count, with their file and the reason."""
    found = run.get(path)
    assert found is not None
    assert all(loser.place is not None for loser in found.losers)
    return [(loser.value, loser.place.file if loser.place else "", loser.note) for loser in found.losers]


def started(folder: Folder, command: str, accelerate: str = PLAIN, trainer: str = TRAINER) -> TrainingRun:
    """The run of a trainer's config that a command starts, with an accelerate config."""
    folder.file("train.yaml", trainer)
    folder.file("acc.yaml", accelerate)
    folder.file("run.sh", command + "\n")
    return folder.run()


def test_a_flag_wins_over_the_config_it_names(folder: Folder) -> None:
    run = started(
        folder,
        "accelerate launch --config_file acc.yaml --num_processes 8 --mixed_precision bf16 t.py --config train.yaml",
    )
    assert value(run, "parallel.world") == 8
    assert value(run, "precision.mixed") == "bf16"
    assert lost(run, "parallel.world") == [(4, "acc.yaml", "the command line wins over the accelerate config")]
    assert lost(run, "precision.mixed") == [("fp16", "acc.yaml", "the launcher's flag wins over the accelerate config")]


def test_num_processes_is_the_total(folder: Folder) -> None:
    run = started(
        folder, "accelerate launch --config_file acc.yaml t.py --config train.yaml", PLAIN + "num_machines: 2\n"
    )
    assert (value(run, "parallel.world"), value(run, "parallel.nodes")) == (4, 2)
    assert value(run, "parallel.data") == 4


@pytest.mark.parametrize(
    ("command", "world"),
    [
        ("torchrun --nproc_per_node 2 train.py --config train.yaml", 2),
        ("torchrun --nproc_per_node 2 --nnodes 3 train.py --config train.yaml", 6),
        ("deepspeed --num_gpus 2 train.py --config train.yaml", 2),
        ("python train.py --config train.yaml", 1),
        ("WORLD_SIZE=16 python train.py --config train.yaml", 16),
    ],
)
def test_other_launchers_read_no_accelerate_config(folder: Folder, command: str, world: int) -> None:
    run = started(folder, command)
    assert run.files == ("train.yaml", "run.sh")
    assert value(run, "parallel.world") == world
    assert value(run, "precision.mixed") is None


def test_a_config_beside_joins_what_accelerate_starts(folder: Folder) -> None:
    assert "acc.yaml" in started(folder, "accelerate launch train.py --config train.yaml").files


@pytest.mark.parametrize("launcher", ["torchrun --nproc_per_node 2", "python", "deepspeed"])
def test_the_environment_counts_where_accelerate_does_not_launch(folder: Folder, launcher: str) -> None:
    run = started(folder, f"export ACCELERATE_MIXED_PRECISION=bf16\n{launcher} train.py --config train.yaml")
    assert value(run, "precision.mixed") == "bf16"
    assert value(run, "precision.compute") == "bfloat16"
    assert run.precision.compute is not None
    assert run.precision.compute.origin == "derived"


def test_accelerate_launch_sets_the_variable_itself(folder: Folder) -> None:
    run = started(
        folder, "ACCELERATE_MIXED_PRECISION=bf16 accelerate launch --config_file acc.yaml train.py --config train.yaml"
    )
    assert value(run, "precision.mixed") == "fp16"


def test_a_flag_of_the_trainer_wins_over_the_launcher(folder: Folder) -> None:
    run = started(
        folder,
        "accelerate launch --config_file acc.yaml train.py --config train.yaml",
        trainer=TRAINER + "bf16: true\n",
    )
    assert value(run, "precision.compute") == "bfloat16"
    assert lost(run, "precision.compute") == [("fp16", "acc.yaml", "`bf16` of the trainer wins over the launcher")]


def test_the_trainers_engine_wins_over_accelerates(folder: Folder) -> None:
    folder.file("zero2.json", ZERO2)
    run = started(
        folder,
        "accelerate launch --config_file acc.yaml train.py --config train.yaml",
        ENGINE,
        TRAINER + "deepspeed: zero2.json\ngradient_accumulation_steps: 2\n",
    )
    why = "the DeepSpeed config wins over the accelerate config"
    assert (value(run, "sharding.kind"), value(run, "sharding.offload_optimizer")) == ("zero2", "cpu")
    assert lost(run, "sharding.kind") == [("zero3", "acc.yaml", why)]
    assert lost(run, "sharding.offload_optimizer") == [("none", "acc.yaml", why)]
    assert value(run, "batch.accumulation") == 2


def test_a_deepspeed_file_wins_over_flags_beside_it(folder: Folder) -> None:
    folder.file("zero2.json", ZERO2)
    run = started(
        folder,
        "accelerate launch --use_deepspeed --zero_stage 3 --deepspeed_config_file zero2.json t.py --config train.yaml",
        accelerate="{}\n",
    )
    assert value(run, "sharding.kind") == "zero2"
    assert lost(run, "sharding.kind") == [("zero3", "run.sh", "the DeepSpeed config wins over the launcher's flag")]


def test_the_trainer_and_deepspeed_must_agree(folder: Folder) -> None:
    folder.file("zero2.json", '{"zero_optimization": {"stage": 2}, "gradient_clipping": 0.5, "train_batch_size": 64}')
    folder.file("train.yaml", TRAINER + "deepspeed: zero2.json\nmax_grad_norm: 1.0\ngradient_accumulation_steps: 2\n")
    folder.file("run.sh", "deepspeed --num_gpus 2 train.py --config train.yaml\n")
    run = folder.run()
    stops = "the Trainer stops where DeepSpeed's value is another than its own, unless it is `auto`"
    assert (value(run, "clip"), lost(run, "clip")) == (1.0, [(0.5, "zero2.json", stops)])
    refused = "batch, accumulation and processes make another number, which DeepSpeed refuses"
    assert value(run, "batch.effective") == 16
    assert lost(run, "batch.effective") == [(64, "zero2.json", refused)]


def test_deepspeed_is_compared_with_the_trainers_defaults_too(folder: Folder) -> None:
    folder.file("zero2.json", '{"zero_optimization": {"stage": 2}, "gradient_clipping": 0.5}')
    folder.file("train.yaml", TRAINER + "deepspeed: zero2.json\n")
    clip = folder.run().clip
    assert clip is not None
    assert clip.value == 0.5
    assert [(loser.value, loser.origin) for loser in clip.losers] == [(1.0, "default")]
    assert "stops" in clip.losers[0].note


def test_checkpointing_is_on_where_either_side_turns_it_on(folder: Folder) -> None:
    sharded = ACCELERATE + "distributed_type: FSDP\nfsdp_config:\n  fsdp_activation_checkpointing: true\n"
    run = started(
        folder,
        "accelerate launch --config_file acc.yaml train.py --config train.yaml",
        sharded,
        TRAINER + "gradient_checkpointing: false\n",
    )
    assert value(run, "checkpointing.kind") == "full"
    assert lost(run, "checkpointing.kind") == [("none", "train.yaml", "either side turns it on")]


def test_a_script_of_ones_own_wins_over_the_launcher_in_precision_alone(folder: Folder) -> None:
    folder.file("train.py", LOOP)
    folder.file("acc.yaml", ENGINE + "mixed_precision: fp16\n")
    folder.file("run.sh", "accelerate launch --config_file acc.yaml train.py\n")
    run = folder.run()
    assert value(run, "precision.mixed") == "bf16"
    assert lost(run, "precision.mixed") == [("fp16", "acc.yaml", "the script wins over the accelerate config")]
    assert value(run, "batch.accumulation") == 8
    assert lost(run, "batch.accumulation") == [(2, "train.py", "the accelerate config wins over the script")]


def test_what_a_program_gives_to_accelerator_wins_over_the_launcher(folder: Folder) -> None:
    folder.file(
        "run.sh",
        "accelerate launch --mixed_precision fp16 train_text_to_image.py --pretrained_model_name_or_path a/b "
        "--train_batch_size 1 --max_train_steps 10 --mixed_precision bf16\n",
    )
    run = folder.run()
    assert value(run, "precision.mixed") == "bf16"
    assert [loser[0] for loser in lost(run, "precision.mixed")] == ["fp16"]


def test_ms_swift_takes_its_processes_from_the_environment(folder: Folder) -> None:
    folder.file("run.sh", "NPROC_PER_NODE=4 NNODES=2 swift sft --model a/b --dataset d --train_type lora\n")
    assert value(folder.run(), "parallel.world") == 8


def test_deepspeed_casts_what_was_loaded_otherwise(folder: Folder) -> None:
    folder.file("zero2.json", '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}')
    folder.file("train.yaml", TRAINER + "deepspeed: zero2.json\nbf16: true\ntorch_dtype: float32\n")
    run = folder.run()
    assert value(run, "precision.weights") == "bfloat16"
