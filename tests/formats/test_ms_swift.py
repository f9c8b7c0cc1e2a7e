"""ms-swift: its arguments in YAML and JSON, on the command line, and under Megatron."""

from __future__ import annotations

import pytest

from .drafting import draft, fragment, fragments, options

TEXT = """
model: Qwen/Qwen2.5-7B-Instruct
tuner_type: lora
dataset: ['AI-ModelScope/alpaca-gpt4-data-en#500']
torch_dtype: bfloat16
max_length: 2048
per_device_train_batch_size: 1
learning_rate: 1e-4
lora_rank: 16
target_modules: all-linear
deepspeed: zero2
"""


def test_lora_under_a_config_it_brings_along() -> None:
    made = draft(TEXT, known={"parallel.world": 4})
    wanted = {
        "method": "lora",
        "adapter.rank": 16,
        "adapter.alpha": 32.0,
        "adapter.targets": ("all-linear",),
        "batch.accumulation": 4,
        "length.max": 2048,
        "precision.weights": "bfloat16",
        "precision.master": "float32",
        "sharding.kind": "zero2",
        "sharding.reduce_bucket": 2e8,
        "checkpointing.kind": "full",
        "optimizer.lr": 1e-4,
    }
    assert {path: made.get(path) for path in wanted} == wanted


def test_no_length_is_no_number() -> None:
    assert draft(TEXT.replace("max_length: 2048\n", "")).get("length.max") is None


def test_a_quantized_base() -> None:
    made = draft(TEXT.replace("deepspeed: zero2", "quant_bits: 4\nquant_method: bnb").replace("1e-4", "0.0001"))
    assert made.get("method") == "qlora"
    assert [made.get(f"quantization.{name}") for name in ("bits", "type", "double", "compute")] == [
        4,
        "nf4",
        True,
        "bfloat16",
    ]


def test_old_names_and_full_training() -> None:
    made = draft(TEXT.replace("tuner_type: lora", "train_type: full"))
    assert (made.get("method"), made.get("adapter.rank")) == ("full", None)


def test_without_a_dtype_the_checkpoint_decides() -> None:
    text = TEXT.replace("torch_dtype: bfloat16\n", "").replace("deepspeed: zero2\n", "")
    assert options(draft(text), "precision.weights") == {"bfloat16", "float32"}
    made = draft(text, known={"model.dtype": "float32"})
    assert (made.get("precision.fp16"), made.get("precision.compute")) == (True, "float16")


def test_one_process_spreads_the_layers() -> None:
    text = TEXT.replace("deepspeed: zero2\n", "")
    assert draft(text, known={"device.count": 2}).get("sharding.kind") == "device-map"
    assert draft(text, known={"device.count": 1}).get("sharding.kind") == "none"
    env = text + "ENV: {NPROC_PER_NODE: '2'}\n"
    assert draft(env).get("sharding.kind") == "none"


@pytest.mark.parametrize(("word", "objective"), [("dpo", "dpo"), ("rm", "reward"), ("grpo", "grpo")])
def test_rlhf(word: str, objective: str) -> None:
    made = draft(TEXT + f"rlhf_type: {word}\n")
    assert made.get("objective") == objective
    assert made.get("reference") == ("adapter-off" if word == "dpo" else None)


def test_megatron() -> None:
    text = """
model: Qwen/Qwen3-30B-A3B
dataset: x
tuner_type: full
micro_batch_size: 1
global_batch_size: 16
tensor_model_parallel_size: 2
expert_model_parallel_size: 4
recompute_granularity: full
torch_dtype: bfloat16
lr: 1e-5
"""
    made = draft(text, known={"parallel.world": 8})
    wanted = {
        "parallel.tensor": 2,
        "parallel.expert": 4,
        "parallel.data": 4,
        "batch.accumulation": 4,
        "checkpointing.kind": "full",
        "sharding.kind": "zero1",
        "precision.weights": "bfloat16",
        "precision.gradients": "float32",
        "optimizer.lr": 1e-5,
    }
    assert {path: made.get(path) for path in wanted} == wanted


def test_a_ray_job_keeps_some_under_train() -> None:
    text = "rlhf_type: grpo\nmodel: a/b\ndataset: d\nmicro_batch_size: 2\nrollout: {gpus: 4}\n"
    made = draft(text + "train: {gpus: 4, tuner_type: lora, tensor_model_parallel_size: 2}\n")
    assert (made.get("method"), made.get("parallel.tensor"), made.get("batch.micro")) == ("lora", 2, 2)


def test_a_command_line() -> None:
    made = draft(
        "NPROC_PER_NODE=2 swift sft --model Qwen/Qwen2.5-7B-Instruct --train_type lora --dataset d "
        "--torch_dtype bfloat16 --per_device_train_batch_size 2 --deepspeed zero3 --max_length 1024\n",
        file="train.sh",
    )
    assert (made.get("framework"), made.get("method"), made.get("sharding.kind")) == ("ms-swift", "lora", "zero3")
    assert (made.get("batch.micro"), made.values["batch.micro"].key) == (2, "--per_device_train_batch_size")
    assert made.get("batch.accumulation") == 4


def test_a_command_line_of_megatron() -> None:
    text = "megatron sft --model a/b --dataset d --tuner_type full --tensor_model_parallel_size 4 --max_length 8\n"
    made = draft(text, file="train.sh")
    assert (made.get("parallel.tensor"), made.get("method")) == (4, "full")


def test_what_trains_nothing() -> None:
    assert not fragments("model: a/b\nsampler_engine: vllm\ndataset: d\nmax_length: 8\nnum_return_sequences: 4\n")
    assert not fragments("max_new_tokens: 1024\ntemperature: 0\nstream: true\n")


def test_a_file_of_fsdp_arguments() -> None:
    text = '{"_note": "x", "fsdp": "full_shard auto_wrap", "fsdp_config": {"fsdp_version": 2}}'
    found = fragment(text, "fsdp2.json")
    assert (found.format, found.launches) == ("ms-swift", False)
    assert found.values["sharding.kind"].value == "fsdp2"
