"""Oumi's training configs: switches decide which sections count."""

from __future__ import annotations

from .drafting import draft, fragments

TEXT = """
model:
  model_name: meta-llama/Llama-3.1-8B-Instruct
  model_max_length: 2048
  torch_dtype_str: bfloat16
data:
  train:
    datasets: [{dataset_name: yahma/alpaca-cleaned}]
training:
  trainer_type: TRL_SFT
  use_peft: True
  per_device_train_batch_size: 2
  enable_gradient_checkpointing: True
  gradient_checkpointing_kwargs: {use_reentrant: False}
  optimizer: adamw_torch_fused
  max_steps: -1
peft:
  q_lora: False
  lora_r: 64
  lora_target_modules: [q_proj, v_proj]
  bnb_4bit_quant_type: nf4
fsdp:
  enable_fsdp: False
  sharding_strategy: FULL_SHARD
"""


def test_lora_in_the_models_dtype() -> None:
    made = draft(TEXT)
    wanted = {
        "framework": "trl",
        "objective": "sft",
        "method": "lora",
        "adapter.rank": 64,
        "adapter.alpha": 8.0,
        "precision.weights": "bfloat16",
        "precision.compute": "bfloat16",
        "precision.autocast": False,
        "batch.micro": 2,
        "batch.accumulation": 1,
        "length.max": 2048,
        "checkpointing.kind": "full",
        "checkpointing.reentrant": False,
        "sharding.kind": "none",
        "sharding.strategy": None,
        "quantization.type": None,
        "schedule.max_steps": None,
    }
    assert {path: made.get(path) for path in wanted} == wanted


def test_q_lora_switches_the_quantization_on() -> None:
    made = draft(TEXT.replace("q_lora: False", "q_lora: True"))
    assert made.get("method") == "qlora"
    assert [made.get(f"quantization.{name}") for name in ("bits", "type", "compute")] == [4, "nf4", "float32"]


def test_peft_keys_say_nothing_without_their_switch() -> None:
    made = draft(TEXT.replace("use_peft: True", "use_peft: False"))
    assert made.get("method") == "full"
    assert made.get("adapter.rank") is None


def test_fsdp_and_mixed_precision() -> None:
    text = TEXT.replace("enable_fsdp: False", "enable_fsdp: True\n  mixed_precision: bf16").replace(
        "bfloat16", "float32"
    )
    made = draft(text.replace("use_peft: True", "use_peft: False"), accelerate="1.6.0")
    assert made.get("sharding.kind") == "fsdp"
    assert [made.get(f"precision.{name}") for name in ("weights", "compute")] == ["float32", "bfloat16"]


def test_deepspeed_with_offload() -> None:
    engine = (
        "deepspeed: {enable_deepspeed: true, zero_stage: ZERO_3, precision: BF16, offload_optimizer: {device: CPU}}\n"
    )
    made = draft(TEXT + engine)
    assert made.get("sharding.kind") == "zero3"
    assert made.get("sharding.offload_optimizer") == "cpu"
    assert made.get("precision.master") == "float32"


def test_verl_is_told_by_its_overrides() -> None:
    text = """
model: {model_name: org/model}
training:
  trainer_type: VERL_GRPO
  per_device_train_batch_size: 8
  verl_config_overrides:
    actor_rollout_ref: {actor: {ppo_micro_batch_size_per_gpu: 4}}
    trainer: {n_gpus_per_node: 4, nnodes: 1}
"""
    made = draft(text)
    assert (made.get("framework"), made.get("objective")) == ("verl", "grpo")
    assert (made.get("batch.micro"), made.get("parallel.per_node")) == (4, 4)


def test_evaluations_and_inference_are_no_trainings() -> None:
    assert not fragments("model: {model_name: org/model}\ngeneration: {batch_size: 4}\n")
