"""ZeRO-3 over a quantized base: the load holds it whole on every device."""

from __future__ import annotations

from dataclasses import replace

from trainlint.memory import Setup, estimate, ledger

CONFIG = {
    "model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16,
    "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 32000,
}  # fmt: skip
QLORA = Setup(
    method="qlora", weights="bfloat16", compute="bfloat16", quantization_bits=4, quantization_type="nf4", length=128,
    checkpointing="full", sharding="zero3", data=64, reduce_bucket=10_000_000,
)  # fmt: skip


def test_more_devices_do_not_shrink_the_load_of_a_quantized_base() -> None:
    few, many = (estimate(CONFIG, replace(QLORA, data=data)) for data in (8, 64))
    assert few.peak_phase == many.peak_phase == "load"
    assert few.phases["load"] == many.phases["load"] > 0.5 * few.parameters
    assert many.phases["backward"] < few.phases["backward"]


def test_offloaded_parameters_pass_through_the_device() -> None:
    assert estimate(CONFIG, replace(QLORA, offload_parameters=True)).phases["load"] > 0


def test_a_base_in_16_bit_is_built_in_shards() -> None:
    assert "load" not in estimate(CONFIG, replace(QLORA, method="lora", quantization_bits=0)).phases


def test_the_ledger_of_the_load_sums_up() -> None:
    found = ledger(CONFIG, QLORA)
    assert found.phase == "load"
    assert sum(entry.nbytes for entry in found) == found.total == estimate(CONFIG, QLORA).allocated
