"""LitGPT configs: which command reads them, and the run that gives."""

from __future__ import annotations

import pytest

from .drafting import draft, fragment, fragments, options

QLORA = """
checkpoint_dir: checkpoints/meta-llama/Llama-3.1-8B
precision: bf16-true
quantize: bnb.nf4-dq
devices: 1
lora_r: 16
lora_query: true
lora_value: true
data: {class_path: litgpt.data.JSON, init_args: {json_path: data.json}}
train: {global_batch_size: 8, micro_batch_size: 2, max_seq_length: 1024, epochs: 2}
optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 2e-4, betas: [0.9, 0.95]}}
"""
FULL = """
checkpoint_dir: checkpoints/org/model
devices: 4
train: {global_batch_size: 16, micro_batch_size: 1, lr_warmup_steps: 10}
"""
PRETRAIN = """
model_name: pythia-160m
precision: bf16-mixed
data: TinyStories
devices: auto
train: {global_batch_size: 512, micro_batch_size: 4, max_tokens: 3000000, max_norm: 1.0, tie_embeddings: false}
optimizer: AdamW
"""


def test_qlora_on_one_device() -> None:
    made = draft(QLORA)
    said = {path: made.get(path) for path in ("model.id", "method", "adapter.rank", "adapter.targets", "adapter.dtype")}
    assert said == {
        "model.id": "meta-llama/Llama-3.1-8B",
        "method": "qlora",
        "adapter.rank": 16,
        "adapter.targets": ("qv",),
        "adapter.dtype": "bfloat16",
    }
    assert [made.get(f"quantization.{name}") for name in ("bits", "type", "double")] == [4, "nf4", True]
    assert [made.get(f"batch.{name}") for name in ("micro", "accumulation", "effective")] == [2, 4, 8]
    assert [made.get(f"precision.{name}") for name in ("weights", "compute", "autocast")] == ["bfloat16"] * 2 + [False]
    assert made.get("checkpointing.kind") == "none"
    assert made.get("sharding.kind") == "none"
    assert made.get("loss") == "chunked"
    assert made.get("optimizer.beta2") == 0.95
    place = made.values["optimizer.lr"].place
    assert place is not None
    assert (place.file, place.line) == ("train.yaml", 11)


def test_without_keys_of_lora_the_command_decides() -> None:
    made = draft(FULL)
    assert options(made, "method") == {"full", "lora"}
    assert options(made, "sharding.kind") == {"fsdp", "fsdp2"}
    assert made.get("checkpointing.kind") == "full"
    assert made.get("batch.accumulation") == 4
    assert made.get("precision.weights") == "float32"


def test_pretraining_fills_rows_and_never_recomputes() -> None:
    made = draft(PRETRAIN)
    assert made.get("objective") == "pretrain"
    assert made.get("length.packing") is True
    assert made.get("checkpointing.kind") == "none"
    assert made.get("precision.weights") == "float32"
    assert made.get("optimizer.name") == "adamw_torch_fused"
    assert options(made, "sharding.kind") == {"fsdp", "none"}
    assert made.get("batch.accumulation") is None  # `devices: auto`


@pytest.mark.parametrize(
    ("parts", "targets"),
    [
        ("lora_key: true\nlora_projection: true\nlora_mlp: true\n", ("all-linear",)),
        ("lora_key: true\nlora_projection: true\n", ("attention",)),
        ("lora_mlp: true\n", ("q_proj", "v_proj", "gate_proj", "up_proj", "down_proj")),
        ("lora_head: true\n", ("q_proj", "v_proj", "lm_head")),
    ],
)
def test_the_layers_that_are_adapted(parts: str, targets: tuple[str, ...]) -> None:
    text = "checkpoint_dir: a/b\ntrain: {micro_batch_size: 1, max_seq_length: 8}\n" + parts
    assert fragment(text).values["adapter.targets"].value == targets


def test_the_command_says_what_trains() -> None:
    starts = fragment("litgpt finetune_full --config train.yaml --train.micro_batch_size 2\n", "run.sh")
    made = draft(FULL, starts)
    assert made.get("method") == "full"
    assert made.get("sharding.kind") == "fsdp"
    assert not starts.launches
    assert starts.values["batch.micro"].value == 2


def test_a_command_alone() -> None:
    made = draft("litgpt finetune_lora org/model --lora_r 4 --precision bf16-true --devices 1\n", file="run.sh")
    said = [made.get(path) for path in ("framework", "method", "model.id", "adapter.rank", "adapter.targets")]
    assert said == ["litgpt", "lora", "org/model", 4, ("qv",)]
    assert made.get("precision.weights") == "bfloat16"


def test_what_only_looks_like_it() -> None:
    assert not fragments("train: {batch_size: 4, epochs: 2}\nmodel_name: resnet\n")
    assert not fragments("checkpoint_dir: out\ntrain: data.json\n")
