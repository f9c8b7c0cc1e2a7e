"""LLM Foundry's configs, alone and inside an mcli job."""

from __future__ import annotations

from .drafting import draft, fragments

TEXT = """
variables: {max_seq_len: 4096}
max_seq_len: ${variables.max_seq_len}
model:
  name: hf_causal_lm
  pretrained_model_name_or_path: meta-llama/Meta-Llama-3-8B
  use_flash_attention_2: true
tokenizer: {name: meta-llama/Meta-Llama-3-8B}
train_loader:
  name: finetuning
  dataset: {hf_name: org/data, max_seq_len: "${max_seq_len}", packing_ratio: auto, allow_pad_trimming: false}
optimizer: {name: decoupled_lionw, lr: 5.0e-7, weight_decay: 0}
algorithms: {gradient_clipping: {clipping_type: norm, clipping_threshold: 1}}
max_duration: 2ep
global_train_batch_size: 16
device_train_microbatch_size: 1
precision: amp_bf16
fsdp_config: {sharding_strategy: FULL_SHARD, mixed_precision: PURE, activation_checkpointing: true}
"""


def test_float32_masters_under_fsdp() -> None:
    made = draft(TEXT, known={"device.count": 8})
    wanted = {
        "model.id": "meta-llama/Meta-Llama-3-8B",
        "length.max": 4096,
        "length.packing": True,
        "length.pad_to_max": True,
        "objective": "sft",
        "method": "full",
        "precision.weights": "float32",
        "precision.compute": "bfloat16",
        "sharding.kind": "fsdp",
        "sharding.reduce_dtype": "bfloat16",
        "checkpointing.kind": "full",
        "checkpointing.reentrant": False,
        "optimizer.name": "lion_32bit",
        "clip": 1.0,
        "schedule.epochs": 2.0,
        "batch.accumulation": 2,
    }
    assert {path: made.get(path) for path in wanted} == wanted


def test_one_device_goes_back_to_autocast() -> None:
    made = draft(TEXT, known={"device.count": 1})
    assert made.get("sharding.kind") == "none"
    assert made.get("precision.autocast") is True


def test_an_adapter_is_lora() -> None:
    made = draft(TEXT.replace("  use_flash_attention_2: true\n", "  peft_config: {r: 16, peft_type: LORA}\n"))
    assert (made.get("method"), made.get("adapter.rank"), made.get("adapter.dtype")) == ("lora", 16, "float32")


def test_the_parameters_of_a_job_are_the_config() -> None:
    inner = "".join(f"  {line}\n" for line in TEXT.splitlines())
    made = draft(
        f"name: job\ncompute: {{gpus: 8, gpu_type: a100_80gb}}\ncommand: composer train.py\nparameters:\n{inner}"
    )
    assert (made.get("parallel.world"), made.get("batch.accumulation"), made.get("length.max")) == (8, 2, 4096)
    assert (made.get("device.count"), made.get("device.name")) == (8, "a100_80gb")


def test_a_micro_batch_that_is_searched_for() -> None:
    made = draft(TEXT.replace("device_train_microbatch_size: 1", "device_train_microbatch_size: auto"))
    assert made.get("batch.auto") is True
    assert made.get("batch.micro") is None


def test_evaluations_are_no_trainings() -> None:
    assert not fragments("max_seq_len: 1024\nmodels: [{model_name: a/b}]\nfsdp_config: {mixed_precision: PURE}\n")
