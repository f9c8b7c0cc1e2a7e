"""LightningCLI configs: the Trainer's arguments, precision words, strategies."""

from __future__ import annotations

import pytest

from .drafting import draft, fragment, fragments

TEXT = """
seed_everything: 7
trainer:
  devices: 4
  num_nodes: 2
  precision: PRECISION
  strategy: STRATEGY
  accumulate_grad_batches: 8
  max_epochs: 3
  gradient_clip_val: 1.0
model:
  class_path: my.Module
  init_args: {model_name_or_path: org/model, lr: 1e-4}
data:
  class_path: my.Data
  init_args: {batch_size: 2, max_length: 512}
optimizer:
  class_path: torch.optim.AdamW
  init_args: {lr: 1e-4, fused: true}
"""


def text(precision: str = "bf16-mixed", strategy: str = "auto") -> str:
    return TEXT.replace("PRECISION", precision).replace("STRATEGY", strategy)


def test_the_trainers_arguments() -> None:
    made = draft(text())
    wanted = {
        "parallel.data": 8,
        "batch.accumulation": 8,
        "batch.micro": 2,
        "length.max": 512,
        "clip": 1.0,
        "seed": 7,
        "model.id": "org/model",
        "optimizer.name": "adamw_torch_fused",
        "optimizer.lr": 1e-4,
        "sharding.kind": "none",
        "method": None,  # the module's code decides
    }
    assert {path: made.get(path) for path in wanted} == wanted


@pytest.mark.parametrize(
    ("word", "weights", "compute", "autocast", "scaler"),
    [
        ("16", "float32", "float16", True, True),
        ("bf16", "float32", "bfloat16", True, False),
        ("16-true", "float16", "float16", False, False),
        ("bf16-true", "bfloat16", "bfloat16", False, False),
        ("32", "float32", "float32", False, False),
    ],
)
def test_precision_words(word: str, weights: str, compute: str, autocast: bool, scaler: bool) -> None:
    made = draft(text(word))
    said = [made.get(f"precision.{name}") for name in ("weights", "compute", "autocast", "grad_scaler")]
    assert said == [weights, compute, autocast, scaler]


def test_a_trainer_without_precision_is_float32() -> None:
    made = draft(text().replace("  precision: bf16-mixed\n", ""))
    assert made.get("precision.weights") == made.get("precision.compute") == "float32"


@pytest.mark.parametrize(
    ("strategy", "kind", "offload"),
    [
        ("deepspeed", "zero2", None),
        ("deepspeed_stage_3_offload", "zero3", "cpu"),
        ("fsdp", "fsdp", None),
        ("ddp_find_unused_parameters_true", "none", None),
        ("{class_path: lightning.pytorch.strategies.DeepSpeedStrategy, init_args: {stage: 3}}", "zero3", None),
        ("{class_path: FSDPStrategy, init_args: {cpu_offload: true}}", "fsdp", None),
    ],
)
def test_strategies(strategy: str, kind: str, offload: str | None) -> None:
    made = draft(text(strategy=strategy))
    assert made.get("sharding.kind") == kind
    assert kind == "fsdp" or made.get("sharding.offload_optimizer") == offload
    if kind.startswith("zero"):
        assert made.get("precision.master") == "float32"
        assert made.get("sharding.reduce_bucket") == 2e8


def test_a_strategy_of_somebodys_own_leaves_the_engine_open() -> None:
    made = draft(text(strategy="{class_path: my.Strategy}"))
    assert made.get("sharding.kind") is None
    assert made.get("precision.weights") is None


def test_bitsandbytes_as_a_plugin() -> None:
    plugin = "  plugins: {class_path: BitsandbytesPrecision, init_args: {mode: nf4-dq}}\n"
    values = fragment(text().replace("  max_epochs: 3\n", plugin)).values
    assert [values[f"quantization.{name}"].value for name in ("bits", "type", "double")] == [4, "nf4", True]


def test_the_fit_section_is_the_config() -> None:
    inner = "fit:\n" + "".join(f"  {line}\n" for line in text().splitlines())
    assert draft(inner).get("batch.accumulation") == 8


def test_what_only_looks_like_it() -> None:
    assert not fragments("trainer: {name: x}\nmodel: {name: y}\n")
    assert not fragments("trainer: {devices: 1, max_epochs: 1}\nserver: {port: 80}\n")
