"""MaxText and trlX, which few files are written for."""

from __future__ import annotations

from .drafting import draft, fragments

MAXTEXT = """
base_config: base.yml
model_name: llama3.1-8b
per_device_batch_size: 2
max_target_length: 8192
ici_fsdp_parallelism: 8
ici_tensor_parallelism: 2
dcn_tensor_parallelism: 2
remat_policy: full
quantization: fp8
"""
TRLX = """
train: {seq_length: 64, batch_size: 16, total_steps: 1000, trainer: AcceleratePPOTrainer}
model: {model_path: gpt2, num_layers_unfrozen: 2}
optimizer: {name: adamw, kwargs: {lr: 1.0e-4}}
method: {name: ppoconfig}
"""


def test_maxtext() -> None:
    made = draft(MAXTEXT)
    wanted = {
        "batch.micro": 2,
        "length.max": 8192,
        "parallel.tensor": 4,
        "precision.fp8": True,
        "precision.weights": "float32",
        "checkpointing.kind": "full",
    }
    assert {path: made.get(path) for path in wanted} == wanted


def test_trlx() -> None:
    made = draft(TRLX)
    wanted = {"model.id": "gpt2", "method": "freeze", "objective": "ppo", "batch.micro": 16, "length.max": 64}
    assert {path: made.get(path) for path in wanted} == wanted
    assert draft(TRLX.replace("unfrozen: 2", "unfrozen: -1")).get("method") == "full"


def test_what_only_looks_like_them() -> None:
    assert not fragments("model_name: x\nper_device_batch_size: 2\n")
    assert not fragments("train: {epochs: 2}\nmodel: {path: x}\nmethod: {name: y}\n")
