from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from trainlint.memory.assessment import Assessment, Interval
from trainlint.memory.forecast import KNOWN as PINNED
from trainlint.memory.forecast import UNKNOWN, assess
from trainlint.run import TrainingRun, Value, build

GIB = 1 << 30
MIB = 1 << 20
LLAMA: dict[str, object] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 8000,
    "max_position_embeddings": 1024,
    "tie_word_embeddings": False,
}
KNOWN: dict[str, object] = {
    "model.config": LLAMA,
    "model.shape.positions": 1024,
    "method": "full",
    "precision.weights": "bfloat16",
    "precision.compute": "bfloat16",
    "batch.micro": 4,
    "length.max": 512,
    "checkpointing.kind": "none",
    "optimizer.name": "adamw_torch",
    "attention": "sdpa",
}


def run(
    changes: Mapping[str, object] | None = None, possible: Mapping[str, tuple[object, ...]] | None = None
) -> TrainingRun:
    values = {**KNOWN, **(changes or {})}
    return build(
        "train.yaml",
        "trainlint-run",
        ("train.yaml",),
        {path: Value(value) for path, value in values.items() if value is not None},
        {path: tuple(Value(value, note="some version") for value in found) for path, found in (possible or {}).items()},
    )


def assessed(changes: Mapping[str, object] | None = None, **possible: tuple[object, ...]) -> Assessment:
    found = assess(run(changes, {path.replace("__", "."): options for path, options in possible.items()}))
    assert found is not None
    return found


def test_everything_known_leaves_only_what_releases_differ_by() -> None:
    found = assessed()
    likely = found.allocated.likely
    assert found.allocated == Interval(int(likely * UNKNOWN[0]), likely, int(likely * UNKNOWN[1]))
    assert found.unknown == ()
    assert found.verdict == "unknown"  # no device
    assert found.trainable == found.parameters
    assert found.phases[found.peak_phase] == found.allocated.likely == max(found.phases.values())


def test_known_releases_leave_less() -> None:
    pinned = assessed({"versions.torch": "2.13", "versions.transformers": "5.24"})
    likely = pinned.allocated.likely
    assert likely == assessed().allocated.likely
    assert pinned.allocated == Interval(int(likely * PINNED[0]), likely, int(likely * PINNED[1]))


QLORA = {"method": "qlora", "adapter.rank": 8, "quantization.bits": 4, "quantization.type": "nf4"}


def test_old_bitsandbytes_kept_inputs() -> None:
    new = assessed({**QLORA, "versions.bitsandbytes": "0.45.0"})
    old = assessed({**QLORA, "versions.bitsandbytes": "0.42.0"})
    unknown = assessed(QLORA)
    assert old.allocated.likely > new.allocated.likely == unknown.allocated.likely
    assert unknown.allocated.low == new.allocated.low
    assert unknown.allocated.high == old.allocated.high > new.allocated.high


def test_experts_are_packed_where_they_are_linear_layers() -> None:
    moe = {**LLAMA, "architectures": ["MixtralForCausalLM"], "model_type": "mixtral"}
    moe |= {"num_local_experts": 4, "num_experts_per_tok": 2}
    new = assessed({**QLORA, "model.config": moe, "versions.transformers": "5.2"})
    old = assessed({**QLORA, "model.config": moe, "versions.transformers": "4.57"})
    unknown = assessed({**QLORA, "model.config": moe})
    assert old.allocated.likely < new.allocated.likely == unknown.allocated.likely
    assert unknown.allocated.low <= old.allocated.likely


def test_frozen_units_of_fsdp_keep_what_reentrant_checkpointing_detached() -> None:
    sharded = {**QLORA, "sharding.kind": "fsdp", "parallel.data": 2, "checkpointing.kind": "full"}
    sharded["model.config"] = {**LLAMA, "num_hidden_layers": 12}
    kept = assessed({**sharded, "checkpointing.reentrant": True})
    freed = assessed({**sharded, "checkpointing.reentrant": False})
    stream = 4 * 512 * 256 * 2
    assert kept.phases["backward"] - freed.phases["backward"] >= 8 * stream
    trainer = assessed({**sharded, "precision.autocast": True})
    assert any("reentrant checkpointing: yes" in line for line in trainer.assumptions)
    alone = assessed(sharded)
    assert alone.allocated.likely == freed.allocated.likely
    assert alone.allocated.high >= kept.allocated.likely


def test_the_flash_package_knows_no_fp32() -> None:
    short = assessed({**QLORA, "quantization.prepared": True, "attention": "flash"})
    written = assessed({**QLORA, "quantization.prepared": True, "attention": "sdpa"})
    assert short.allocated.likely < written.allocated.likely  # grouped heads in fp32: no kernel of torch's fits


def test_what_the_driver_shows_is_more_than_the_tensors() -> None:
    found = assessed()
    for name in ("low", "likely", "high"):
        assert getattr(found.device_use, name) > getattr(found.allocated, name)
    assert found.device_use.low < found.device_use.likely < found.device_use.high


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("batch.micro", (1, 2, 8)),
        ("precision.weights", ("bfloat16", "float32")),
        ("checkpointing.kind", ("none", "full")),
        ("optimizer.name", ("sgd", "adamw_torch_fused", "adamw_torch", "adafactor")),
        ("method", ("full", "lora")),
    ],
)
def test_the_unknown_holds_every_known_case(path: str, values: tuple[object, ...]) -> None:
    unknown = assessed({path: None})
    assert any(line.startswith(path) for line in unknown.unknown)
    for value in values:
        known = assessed({path: value})
        assert unknown.allocated.low <= known.allocated.low, value
        if path != "batch.micro":  # its high end is open, and the verdict knows
            assert known.allocated.high <= unknown.allocated.high, value


def test_more_unknowns_never_a_narrower_interval() -> None:
    steps = ("checkpointing.kind", "optimizer.name", "precision.weights", "length.max", "method")
    changes: dict[str, object] = {}
    found = [assessed()]
    for path in steps:
        changes[path] = None
        found.append(assessed(changes))
    for narrower, wider in pairwise(found):
        assert wider.allocated.low <= narrower.allocated.low
        assert wider.allocated.high >= narrower.allocated.high
        assert len(wider.unknown) > len(narrower.unknown)


def test_an_unknown_length_is_no_longer_than_the_positions() -> None:
    short = assessed({"length.max": None, "model.shape.positions": 64})
    assert short.allocated.high <= assessed({"length.max": 64}).allocated.high


@pytest.mark.parametrize("path", ["batch.micro", "length.max"])
def test_an_open_end_never_fits(path: str) -> None:
    roomy = {"device.memory": 1000 * GIB, "device.memory_high": 1000 * GIB}
    assert assessed(roomy).verdict == "fits"
    assert assessed({**roomy, path: None}).verdict == "unknown"
    tiny: dict[str, object] = {"device.memory": 1 << 20, "device.memory_high": 1 << 20}
    assert assessed({**tiny, path: None}).verdict == "exceeds"


def test_device_map_leaves_the_end_open() -> None:
    roomy = {"device.memory": 1000 * GIB, "device.memory_high": 1000 * GIB, "sharding.kind": "device-map"}
    found = assessed(roomy)
    assert found.verdict == "unknown"
    assert "how device_map spreads the blocks" in found.unknown


def test_exceeding_needs_the_larger_device() -> None:
    low = assessed().device_use.low
    assert assessed({"device.memory": low - 2, "device.memory_high": low - 1}).verdict == "exceeds"
    assert assessed({"device.memory": low - 2, "device.memory_high": low + 1}).verdict == "tight"
    assert assessed({"device.memory": low - 1}).verdict == "exceeds"  # one number where the interval is a point


def test_fitting_needs_the_smaller_device() -> None:
    most = smallest_that_fits()
    assert assessed({"device.memory": most, "device.memory_high": 2 * most}).verdict == "fits"
    assert assessed({"device.memory": most - MIB, "device.memory_high": 2 * most}).verdict == "tight"


def smallest_that_fits() -> int:
    """The smallest device, in whole MiB, that a run fits for certain."""
    low, high = 1, 1 << 20
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if assessed({"device.memory": middle * MIB}).verdict == "fits" else (middle + 1, high)
    return low * MIB


def test_options_of_versions_span_what_each_alone_needs() -> None:
    names = ("adamw_torch", "adafactor", "sgd")
    alone = {name: assessed({"optimizer.name": name}).allocated.likely for name in names}
    for options in (names, names[::-1], names[1:], (*names, "adamw_torch_fused")):
        found = assessed({"optimizer.name": None}, optimizer__name=options)
        assert found.allocated.low <= min(alone[name] for name in options if name in alone)
        assert found.allocated.high >= max(alone[name] for name in options if name in alone)
        assert any("some version" in line for line in found.unknown)


def test_the_newest_release_is_the_likeliest() -> None:
    found = assessed({"checkpointing.kind": None}, checkpointing__kind=("none", "full"))
    assert found.allocated.likely == assessed({"checkpointing.kind": "full"}).allocated.likely


def test_a_sharding_that_a_version_decides_leaves_the_shards_open() -> None:
    either = assessed({"precision.weights": "float32"}, sharding__kind=("none", "fsdp2"))
    most = assessed({"precision.weights": "float32", "sharding.kind": "fsdp2", "parallel.data": 64})
    assert either.allocated.low <= most.allocated.low
    assert "parallel.data" in either.unknown


def test_shards_of_an_unknown_number() -> None:
    unknown = assessed({"sharding.kind": "zero3", "parallel.data": None})
    for count in (2, 8, 64):
        known = assessed({"sharding.kind": "zero3", "parallel.data": count})
        assert unknown.allocated.low <= known.allocated.low
        assert known.allocated.high <= unknown.allocated.high


def test_variants_are_other_runs() -> None:
    found = assessed({"device.memory": 24 * GIB})
    less = found.variant({"batch.micro": 1, "checkpointing.kind": "full"})
    assert less is not None
    assert less.allocated == assessed({"batch.micro": 1, "checkpointing.kind": "full"}).allocated
    assert less.capacity == found.capacity
    again = less.variant({"batch.micro": 4, "checkpointing.kind": "none"})
    assert again is not None
    assert again.allocated == found.allocated


def test_variants_forget_and_decide() -> None:
    open_ = assessed().variant({"batch.micro": None})
    assert open_ is not None
    assert "batch.micro" in open_.unknown
    decided = assessed({"checkpointing.kind": None}, checkpointing__kind=("none", "full")).variant(
        {"checkpointing.kind": "none"}
    )
    assert decided is not None
    assert decided.unknown == ()
    with pytest.raises(KeyError):
        assessed().variant({"batch.micros": 1})


def test_the_ledger_sums_up_to_the_likely_peak() -> None:
    for changes in ({}, {"checkpointing.kind": "full"}, {"batch.micro": None}, {"sharding.kind": "fsdp2"}):
        found = assessed(changes)
        assert sum(entry.nbytes for entry in found.ledger().entries) == found.allocated.likely


def test_assumptions_are_said() -> None:
    values: dict[str, Value[object]] = {path: Value(value) for path, value in KNOWN.items() if path != "attention"}
    values["model.config"] = Value(LLAMA, "assumed", note="the shape of Llama, known by the name alone")
    found = assess(build("r", "trainlint-run", ("r",), values))
    assert found is not None
    assert "the shape of Llama, known by the name alone" in found.assumptions
    assert "attention kernel: sdpa" in found.assumptions


@pytest.mark.parametrize(
    "config",
    [
        None,
        {},
        {"model_type": "nobody-knows"},
        {**LLAMA, "hidden_size": 0},
        {**LLAMA, "hidden_size": "256"},
        {**LLAMA, "hidden_size": 2},
        {**LLAMA, "num_hidden_layers": 10**9},
        {**LLAMA, "num_hidden_layers": 2.5},
        {**LLAMA, "num_attention_heads": -1},
        {**LLAMA, "vocab_size": [1]},
        {**LLAMA, "intermediate_size": True},
        {"model_type": "llava", "text_config": {**LLAMA, "hidden_size": {}}},
        {"model_type": "llava", "text_config": 3},
    ],
)
def test_without_a_sound_shape_nothing_is_said(config: Any) -> None:
    assert assess(run({"model.config": config})) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"batch.micro": 0},
        {"length.max": -1},
        {"method": "lora", "adapter.rank": 0},
        {"precision.weights": "float8"},
        {"precision.compute": "none"},
    ],
)
def test_values_beyond_the_model_say_nothing(changes: dict[str, object]) -> None:
    assert assess(run(changes)) is None


def test_an_unfilled_limit_on_the_length_is_no_lower_bound() -> None:
    values = {path: Value(value) for path, value in KNOWN.items()}
    trainer = build("train.yaml", "trl", ("train.yaml",), values)
    packed = build("train.yaml", "trl", ("train.yaml",), {**values, "length.packing": Value(True)})
    loose, full = assess(trainer), assess(packed)
    assert loose is not None
    assert full is not None
    assert loose.allocated.low < full.allocated.low
    assert loose.allocated.likely == full.allocated.likely


@pytest.mark.parametrize("kind", ["zero1", "zero2", "zero3"])
def test_buckets_may_be_written_as_floats(kind: str) -> None:
    shards = {"sharding.kind": kind, "parallel.data": 4}
    sizes: dict[str, object] = {"sharding.reduce_bucket": 1_000_000, "sharding.prefetch_bucket": 100_000}
    floats = {path: float(str(size)) for path, size in sizes.items()}
    assert assessed({**shards, **floats}).allocated == assessed({**shards, **sizes}).allocated


@pytest.mark.parametrize("parameters", [350_000_000, 1_100_000_000, 7_000_000_000, 70_000_000_000, 405_000_000_000])
def test_a_count_of_parameters_gives_exact_states(parameters: int) -> None:
    found = assessed({"model.config": None, "model.parameters": parameters})
    assert abs(found.parameters - parameters) < parameters / 1000
    assert found.allocated.low < 10 * parameters < found.allocated.high  # 8 bytes of states, 2 for a moment
    assert sum(entry.nbytes for entry in found.ledger()) == found.allocated.likely
    assert "model.shape" in found.unknown
    assert (
        assessed({"model.config": None, "model.parameters": parameters, "device.memory": 10**15}).verdict == "unknown"
    )
    assert assessed({"model.config": None, "model.parameters": parameters, "device.memory": GIB}).verdict == "exceeds"


def test_a_size_that_no_usual_shape_has_says_nothing() -> None:
    assert assess(run({"model.config": None, "model.parameters": 1_000_000})) is None
    assert assess(run({"model.config": None})) is None
