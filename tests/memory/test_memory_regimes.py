"""How regimes compare with each other, on one small model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainlint.memory import Setup, estimate, ledger
from trainlint.memory.graph import Parameter
from trainlint.memory.optimizers import ALIASES, BLOCKWISE, FACTORED, PLAIN, TORCHAO, known, state_bytes, step_bytes

CONFIG = {
    "model_type": "llama", "hidden_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8,
    "num_key_value_heads": 4, "intermediate_size": 1408, "vocab_size": 32000,
}  # fmt: skip
FULL = Setup(weights="bfloat16", micro_batch=4, length=1024)
LORA = replace(FULL, method="lora", adapter_rank=16)


def peak(setup: Setup) -> int:
    return estimate(CONFIG, setup).allocated


@pytest.mark.parametrize(
    "loss", ["liger", "fused", "trl-fused", "trl-chunked", "cut-ce", "unsloth", "torchtune-chunked"]
)
def test_losses_that_make_no_logits_need_less(loss: str) -> None:
    assert peak(replace(FULL, loss=loss, length=4096)) < peak(replace(FULL, length=4096))


@pytest.mark.parametrize("setup", [FULL, LORA], ids=["full", "lora"])
def test_checkpointing_variants_lie_between_all_and_nothing(setup: Setup) -> None:
    setup = replace(setup, loss="liger")
    none, full = peak(setup), peak(replace(setup, checkpointing="full"))
    every_other = peak(replace(setup, checkpointing="full", checkpoint_every=2))
    selective = estimate(CONFIG, replace(setup, checkpointing="selective"))
    assert full < every_other < none
    assert full < selective.allocated < none
    assert selective.low == pytest.approx(full, rel=1e-6)
    assert selective.high == pytest.approx(none, rel=1e-6)


def test_offloading_activations_needs_less() -> None:
    assert peak(replace(FULL, activation_offload=True)) < peak(FULL)


def test_liger_kernels_need_less() -> None:
    assert peak(replace(FULL, kernels="liger")) < peak(FULL)


def test_stepping_in_the_backward_holds_no_gradients() -> None:
    setup = replace(FULL, checkpointing="full", micro_batch=1, length=128, optimizer="adamw_torch_fused")
    assert peak(replace(setup, in_backward=True)) < peak(setup)


def test_a_reference_copy_costs_more_than_a_switched_off_adapter() -> None:
    needs = [peak(replace(LORA, objective="dpo", reference=kind)) for kind in ("precomputed", "adapter-off", "copy")]
    assert needs == sorted(needs)
    assert needs[0] < needs[2]


def test_pairs_double_the_rows() -> None:
    assert peak(replace(LORA, objective="dpo", micro_batch=1)) > peak(replace(LORA, micro_batch=1))


def test_gathered_logits_of_more_steps_need_more() -> None:
    one, four = (estimate(CONFIG, replace(LORA, eval_batch=4, eval_steps=steps)) for steps in (1, 4))
    assert one.phases["evaluation"] < four.phases["evaluation"]
    apart = estimate(CONFIG, replace(LORA, eval_batch=4, eval_steps=4, eval_gather=False))
    assert apart.phases["evaluation"] <= one.phases["evaluation"]


def test_evaluation_alone_has_no_other_phase() -> None:
    assert set(estimate(CONFIG, replace(FULL, eval_only=True, eval_steps=2, eval_batch=2)).phases) == {"evaluation"}


def test_replicas_hold_a_bucket_for_each_gradient_unless_they_are_views() -> None:
    alone, replicated = estimate(CONFIG, FULL), estimate(CONFIG, replace(FULL, data=4))
    assert replicated.allocated - alone.allocated == 2 * alone.parameters
    views = estimate(CONFIG, replace(FULL, data=4, bucket_view=True))
    assert views.phases["optimizer"] < replicated.phases["optimizer"]


@pytest.mark.parametrize("kind", ["tensor", "pipeline", "context", "expert"])
def test_what_only_source_backs_has_an_interval(kind: str) -> None:
    found = estimate(CONFIG, replace(FULL, **{kind: 2}))
    assert found.low < found.allocated < found.high
    assert any("parallelism" in said for said in found.assumptions)


def test_an_unknown_optimizer_is_said() -> None:
    found = estimate(CONFIG, replace(FULL, optimizer="shampoo"))
    assert found.low < found.allocated < found.high
    assert "shampoo" in found.assumptions[0]


def test_group_wise_quantization_is_smaller_than_the_weights() -> None:
    quantized = replace(LORA, method="qlora", quantization_bits=4, quantization_type="gptq")
    weights = [entry for entry in ledger(CONFIG, quantized) if entry.what == "quantized weights"]
    assert weights[0].nbytes < 0.6 * weights[0].elements


def test_trained_copies_of_modules_are_counted_beside_the_originals() -> None:
    plain, saved = LORA, replace(LORA, modules_to_save=("embed_tokens", "lm_head"))
    assert estimate(CONFIG, saved).trainable - estimate(CONFIG, plain).trainable == 2 * 32000 * 512


@pytest.mark.parametrize("name", sorted({*PLAIN, *TORCHAO, *FACTORED, *ALIASES, *(f"{k}_8bit" for k in BLOCKWISE)}))
def test_every_optimizer_runs(name: str) -> None:
    assert known(name)
    assert peak(replace(FULL, optimizer=name)) > 0


@pytest.mark.parametrize(
    ("name", "bytes_each"),
    [
        ("sgd", 0), ("adamw_torch_fused", 8), ("adamw_torch", 8), ("adamw_bnb_8bit", 2 + 8 / 256),
        ("adamw_torch_4bit", 1 + 8 / 128), ("lion_8bit", 1 + 4 / 256), ("lion_32bit", 4),
        ("ademamix_8bit", 3 + 12 / 256), ("rmsprop", 4),
        ("adagrad", 4), ("paged_adamw_8bit", 8 / 256), ("muon", 4), ("schedule_free_adamw", 8),
    ],
)  # fmt: skip
def test_state_bytes_of_a_large_matrix(name: str, bytes_each: float) -> None:
    elements = 4096 * 4096
    matrix = Parameter("s0.0.mlp.up_proj", "linear", elements, "float32", (4096, 4096), True, 4 * elements)
    assert state_bytes(name, [matrix]) == pytest.approx(bytes_each * elements, rel=1e-3, abs=4096)


def test_foreach_needs_a_copy_and_fused_nothing() -> None:
    matrices = [Parameter(str(i), "linear", 4096, "float32", (64, 64), True, 16384) for i in range(3)]
    assert step_bytes("adamw_torch", matrices) == 3 * 16384
    assert step_bytes("adamw_torch", matrices, foreach=False) == 2 * 16384
    assert step_bytes("adamw_torch_fused", matrices) == 0
