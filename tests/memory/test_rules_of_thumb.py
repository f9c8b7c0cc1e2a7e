"""Sums that guides and calculators work out, and where the memory model says the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from trainlint.memory import Setup, estimate, ledger, parameters
from trainlint.memory.standin import usual

MIB = 1 << 20
GB = 10**9
SMALL: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 320, "num_hidden_layers": 8, "num_attention_heads": 5,
    "num_key_value_heads": 5, "intermediate_size": 864, "vocab_size": 7940, "tie_word_embeddings": False,
}  # fmt: skip


def held(setup: Setup, config: dict[str, Any]) -> int:
    """Weights, gradients and states at the optimizer's step."""
    whole = ("weights", "gradients", "optimizer state")
    return sum(entry.nbytes for entry in ledger(config, setup) if entry.what.startswith(whole))


def test_fifteen_million_parameters_in_fp32_take_229_mib() -> None:
    count = parameters(SMALL).total
    assert count == pytest.approx(15e6, rel=0.005)
    size = held(Setup(weights="float32", micro_batch=1, length=8), SMALL)
    assert size == pytest.approx(16 * count, rel=0.001)  # 4 weight, 4 gradient, 8 Adam
    assert size / MIB == pytest.approx(229, rel=0.005)


@pytest.mark.parametrize(
    ("setup", "bytes_each"),
    [
        (Setup(weights="float32", compute="bfloat16", autocast=True, length=8), 16),
        (Setup(weights="bfloat16", length=8), 8),
        (Setup(weights="bfloat16", optimizer="adamw_bnb_8bit", length=8), 6.3),
        (Setup(weights="float32", optimizer="sgd", momentum=0.9, length=8), 12),
    ],
)
def test_bytes_a_parameter_by_what_is_trained_how(setup: Setup, bytes_each: float) -> None:
    config = dict(usual(7 * GB))
    count = parameters(config).total
    found = estimate(config, setup)
    assert found.held / count == pytest.approx(bytes_each, rel=0.05)
    if bytes_each == 16:
        assert found.held == pytest.approx(112 * GB, rel=0.002)


def test_accumulation_multiplies_the_batch_and_not_the_activations() -> None:
    micro, steps, devices = 4, 8, 1
    assert micro * steps * devices == 32
    once, often = (
        estimate(SMALL, Setup(weights="float32", micro_batch=micro, length=512, accumulation=n)).phases
        for n in (1, steps)
    )
    gradients = 4 * parameters(SMALL).total
    assert often["forward"] - once["forward"] == pytest.approx(gradients, rel=0.01)
    sizes = [estimate(SMALL, Setup(weights="float32", micro_batch=number, length=512)) for number in (1, micro)]
    one, four = (found.phases["forward"] - 12 * parameters(SMALL).total for found in sizes)  # weights, moments
    assert four == pytest.approx(micro * one, rel=0.05)


def lora(batch: int, length: int) -> Setup:
    return Setup(
        method="lora", weights="bfloat16", adapter_rank=16, micro_batch=batch, length=length, checkpointing="full"
    )


@pytest.mark.parametrize(("billions", "guide"), [(1.5, 6), (8, 19)])
def test_two_gb_a_billion_and_three_for_lora_hold_for_short_batches_only(billions: float, guide: float) -> None:
    config = dict(usual(int(billions * GB)))
    assert estimate(config, lora(1, 512)).allocated < guide * GB
    assert estimate(config, lora(8, 2048)).allocated > guide * GB


def test_twelve_gb_a_billion_and_four_for_full_tuning_lie_between_two_dtypes() -> None:
    config = dict(usual(int(1.5 * GB)))
    guide = 12 * 1.5 + 4
    setups = (
        Setup(weights=dtype, compute="bfloat16", autocast=dtype == "float32", micro_batch=1, length=512)
        for dtype in ("bfloat16", "float32")
    )
    short, wide = (estimate(config, setup).allocated / GB for setup in setups)
    assert short < guide < wide


def test_a_quantized_base_is_a_quarter_and_the_run_about_half() -> None:
    config = dict(usual(8 * GB))
    plain = estimate(config, lora(1, 512)).allocated
    four_bits = replace(lora(1, 512), method="qlora", quantization_bits=4, quantization_type="nf4")
    packed = estimate(config, four_bits).allocated
    assert 0.3 < packed / plain < 0.5
    assert packed < 9 * GB
