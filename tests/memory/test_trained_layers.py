"""Only the last layers train: what the others would have kept and held is not counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainlint.memory import Setup, estimate

CONFIG = {
    "model_type": "llama", "hidden_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8,
    "num_key_value_heads": 4, "intermediate_size": 1408, "vocab_size": 32000,
}  # fmt: skip
LORA = Setup(method="lora", weights="bfloat16", adapter_rank=16, micro_batch=4, length=1024, loss="liger")
FROZEN = replace(LORA, method="freeze")


def test_adapters_are_counted_in_the_last_layers_alone() -> None:
    whole, half = (estimate(CONFIG, replace(LORA, trained_layers=layers)) for layers in (0, 4))
    assert half.trainable * 2 == whole.trainable
    assert half.allocated < whole.allocated
    assert half.parameters == pytest.approx(whole.parameters, rel=0.02)


@pytest.mark.parametrize("setup", [LORA, FROZEN], ids=["lora", "freeze"])
def test_more_layers_never_need_less(setup: Setup) -> None:
    needs = [estimate(CONFIG, replace(setup, trained_layers=layers)).allocated for layers in (1, 2, 4, 7, 8)]
    assert needs == sorted(needs)


def test_all_layers_are_as_good_as_no_limit() -> None:
    assert estimate(CONFIG, replace(LORA, trained_layers=8)) == estimate(CONFIG, LORA)


def test_outside_the_layers_nothing_trains_where_layers_are_unfrozen() -> None:
    layer = 4 * 512 * 512 - 2 * 512 * 256 + 3 * 512 * 1408 + 2 * 512
    assert estimate(CONFIG, replace(FROZEN, trained_layers=2)).trainable == 2 * layer


def test_every_layer_walked_gives_the_same() -> None:
    from trainlint.memory.estimate import solve

    setup = replace(LORA, trained_layers=3, checkpointing="full")
    short, long = (max(solve(CONFIG, setup, every_layer=every).budget.totals().values()) for every in (False, True))
    assert short == long
