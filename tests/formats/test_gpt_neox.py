"""GPT-NeoX: its own spelling, DeepSpeed's regimes, Megatron's degrees."""

from __future__ import annotations

import pytest

from .drafting import draft, fragment, fragments

TEXT = """{
  "pipe_parallel_size": 0,
  "model_parallel_size": 2,
  # sizes
  "num_layers": 24, "hidden_size": 2048, "num_attention_heads": 16,
  "seq_length": 2048, "max_position_embeddings": 2048,
  "pos_emb": "rotary", "no_weight_tying": true, "gpt_j_residual": false,
  "attention_config": [[["flash"], 24]],
  "optimizer": {"type": "Adam", "params": {"lr": 0.0002, "betas": [0.9, 0.95],}},
  "zero_optimization": {"stage": 1, "allgather_bucket_size": 500000000, "overlap_comm": True,},
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": 2,
  "checkpoint_activations": true,
  "checkpoint_num_layers": 2,
  "fp16": {"enabled": true},
  "train_iters": 1000,
}
"""


def run(text: str) -> dict[str, object]:
    made = draft(text, file="configs/1-3B.yml", known={"device.count": 8})
    wanted = (
        "parallel.pipeline", "parallel.tensor", "parallel.data", "batch.micro", "batch.accumulation", "length.max",
        "length.packing", "checkpointing.kind", "checkpointing.every", "precision.weights", "precision.master",
        "precision.grad_scaler", "sharding.kind", "optimizer.name", "optimizer.beta2", "attention", "model.shape.tied",
    )  # fmt: skip
    return {path: made.get(path) for path in wanted}


WANTED = {
    "parallel.pipeline": 1,
    "parallel.tensor": 2,
    "parallel.data": 4,
    "batch.micro": 4,
    "batch.accumulation": 2,
    "length.max": 2048,
    "length.packing": True,
    "checkpointing.kind": "full",
    "checkpointing.every": 2,
    "precision.weights": "float16",
    "precision.master": "float32",
    "precision.grad_scaler": True,
    "sharding.kind": "zero1",
    "optimizer.name": "adamw_torch_fused",
    "optimizer.beta2": 0.95,
    "attention": "flash",
    "model.shape.tied": False,
}


def test_a_config_in_the_style_of_json() -> None:
    assert run(TEXT) == WANTED


def test_hyphens_mean_the_same() -> None:
    names = ("pipe_parallel_size", "model_parallel_size", "num_layers", "seq_length", "checkpoint_num_layers")
    text = TEXT
    for name in names:
        text = text.replace(f'"{name}"', '"' + name.replace("_", "-") + '"')
    assert run(text) == WANTED


@pytest.mark.parametrize(
    ("section", "weights"),
    [
        ('"precision": "bfloat16"', "bfloat16"),
        ('"bf16": {"enabled": true}, "precision": "bfloat16"', "bfloat16"),
        ('"precision": "fp32"', "float32"),
        ('"split": "969,30,1"', "float32"),
    ],
)
def test_precision(section: str, weights: str) -> None:
    assert run(TEXT.replace('"fp16": {"enabled": true}', section))["precision.weights"] == weights


def test_a_model_alone_is_a_part_of_a_run() -> None:
    text = TEXT[: TEXT.index('  "optimizer"')] + "}\n"
    assert (fragment(text, "m.yml").format, fragment(text, "m.yml").launches) == ("gpt-neox", False)


def test_deepspeeds_own_config_stays_deepspeeds() -> None:
    text = '{"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}'
    assert [one.format for one in fragments(text, "ds.json")] == ["deepspeed"]
