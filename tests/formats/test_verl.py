"""verl: composed configs, parts, the SFT trainer, overrides on a command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from .drafting import draft, fragment, fragments

TEXT = """
algorithm: {adv_estimator: grpo, use_kl_in_reward: false}
data: {train_batch_size: 1024, max_prompt_length: 512, max_response_length: 1024}
actor_rollout_ref:
  model: {path: Qwen/Qwen3-8B, use_remove_padding: true, lora_rank: 0}
  actor:
    strategy: fsdp2
    ppo_micro_batch_size_per_gpu: 8
    use_kl_loss: true
    fsdp_config: {param_offload: true, optimizer_offload: true}
  rollout: {tensor_model_parallel_size: 2}
trainer: {n_gpus_per_node: 8, nnodes: 2, total_epochs: 15}
"""
SFT = """
data: {train_batch_size: 256, micro_batch_size_per_gpu: 4, max_length: 2048}
model: {partial_pretrain: Qwen/Qwen2.5-0.5B, lora_rank: 32, lora_alpha: 16, strategy: fsdp2}
optim: {lr: 1e-5}
trainer: {n_gpus_per_node: 8, nnodes: 1, total_epochs: 2}
"""


def test_the_actors_update() -> None:
    made = draft(TEXT)
    wanted = {
        "model.id": "Qwen/Qwen3-8B",
        "objective": "grpo",
        "reference": "copy",
        "method": "full",
        "batch.micro": 8,
        "length.max": 1536,
        "length.padding_free": True,
        "precision.weights": "float32",
        "precision.compute": "bfloat16",
        "sharding.kind": "fsdp2",
        "sharding.offload_optimizer": None,  # it is back on the device during the update
        "parallel.data": 16,
        "parallel.tensor": None,  # the rollout's degree is not the actor's
        "checkpointing.kind": "full",
        "schedule.epochs": 15.0,
    }
    assert {path: made.get(path) for path in wanted} == wanted


def test_a_dynamic_batch_is_no_number() -> None:
    made = draft(TEXT.replace("    use_kl_loss: true\n", "    use_dynamic_bsz: true\n"))
    assert made.get("batch.micro") is None
    assert made.get("reference") == "none"


def test_megatron() -> None:
    text = TEXT.replace("strategy: fsdp2", "strategy: megatron\n    megatron: {tensor_model_parallel_size: 4}")
    made = draft(text)
    assert (made.get("sharding.kind"), made.get("parallel.tensor"), made.get("parallel.data")) == ("zero1", 4, 4)
    assert made.get("precision.master") == "float32"


def test_supervised_fine_tuning() -> None:
    made = draft(SFT)
    wanted = {
        "objective": "sft",
        "method": "lora",
        "adapter.rank": 32,
        "adapter.targets": ("all-linear",),
        "batch.micro": 4,
        "batch.accumulation": 8,
        "length.max": 2048,
        "sharding.kind": "fsdp2",
    }
    assert {path: made.get(path) for path in wanted} == wanted


def test_a_part_says_nothing_of_a_run() -> None:
    part = fragment("_target_: verl.workers.config.ActorConfig\nppo_micro_batch_size_per_gpu: 4\nstrategy: ???\n")
    assert (part.format, part.launches, part.values) == ("verl", False, {})


def put(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_the_files_it_is_composed_of(tmp_path: Path) -> None:
    put(
        tmp_path,
        trainer__actor__dp_actor="defaults: [../engine@fsdp_config: fsdp, actor, _self_]\nstrategy: fsdp2\n",
        trainer__actor__actor="strategy: ???\nppo_micro_batch_size_per_gpu: 2\nuse_kl_loss: false\n",
        trainer__engine__fsdp="model_dtype: bf16\n",
        trainer__model__hf_model="path: org/model\nenable_gradient_checkpointing: false\n",
        trainer__ppo_trainer=(
            "defaults:\n  - actor@actor_rollout_ref.actor: dp_actor\n"
            "  - model@actor_rollout_ref.model: hf_model\n  - _self_\ntrainer: {n_gpus_per_node: 4, nnodes: 1}\n"
        ),
    )
    text = (
        "hydra: {searchpath: ['file://trainer']}\ndefaults: [ppo_trainer, _self_]\n"
        "data: {max_prompt_length: 8, max_response_length: 8}\n"
        "actor_rollout_ref: {model: {path: org/other}}\n"
    )
    file = str(tmp_path / "examples" / "grpo.yaml")
    made = draft(text, file=file)
    wanted = {
        "model.id": "org/other",
        "batch.micro": 2,
        "precision.weights": "bfloat16",
        "sharding.kind": "fsdp2",
        "checkpointing.kind": "none",
        "parallel.data": 4,
        "length.max": 16,
    }
    assert {path: made.get(path) for path in wanted} == wanted
    micro = made.values["batch.micro"].place
    assert micro is not None
    assert (Path(micro.file).name, micro.line) == ("actor.yaml", 2)
    assert {Path(one.text).name for one in made.fragments[0].references if one.role == "config"} >= {"dp_actor.yaml"}


def test_a_file_that_is_not_there_leaves_defaults_open() -> None:
    made = draft("defaults: [my_base, _self_]\n" + TEXT)
    assert made.get("batch.micro") == 8
    assert made.get("precision.weights") is None
    assert draft("defaults: [ppo_trainer, _self_]\n" + TEXT).get("precision.weights") == "float32"


@pytest.mark.parametrize("tail", ["", " ~trainer.logger +trainer.x=1 $@"])
def test_overrides_on_a_command_line(tail: str) -> None:
    made = draft(
        "N=4\npython3 -m verl.trainer.main_ppo \\\n  algorithm.adv_estimator=grpo data.max_prompt_length=512 \\\n"
        "  data.max_response_length=512 actor_rollout_ref.model.path=Qwen/Qwen3-4B \\\n"
        "  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 trainer.n_gpus_per_node=$N trainer.nnodes=1" + tail,
        file="run.sh",
    )
    assert made.get("framework") == "verl"
    assert (made.get("objective"), made.get("model.id"), made.get("length.max")) == ("grpo", "Qwen/Qwen3-4B", 1024)
    assert (made.get("batch.micro"), made.get("parallel.data")) == (4, 4)
    micro = made.values["batch.micro"]
    assert micro.place is not None
    assert (micro.key, micro.raw, micro.place.line) == ("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", "4", 5)


def test_what_only_looks_like_it() -> None:
    assert not fragments("trainer: {epochs: 8}\ndata: {train_files: x}\n")
    assert not fragments("trainer: {nnodes: 1}\ndata: {path: x}\n")
