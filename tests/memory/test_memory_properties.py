"""What must hold of every run, whatever its numbers."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from trainlint.memory import Setup, estimate
from trainlint.memory.families import family
from trainlint.memory.walk import Walk

CONFIGS = {
    "llama": {
        "model_type": "llama", "hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 8,
        "num_key_value_heads": 2, "intermediate_size": 688, "vocab_size": 4000,
    },
    "gpt2": {"model_type": "gpt2", "n_embd": 256, "n_layer": 5, "n_head": 8, "vocab_size": 4000},
    "gemma2": {
        "model_type": "gemma2", "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 64, "intermediate_size": 512, "vocab_size": 4000,
    },
    "mixtral": {
        "model_type": "mixtral", "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 8,
        "num_key_value_heads": 2, "intermediate_size": 256, "vocab_size": 4000, "num_local_experts": 4,
        "num_experts_per_tok": 2,
    },
    "t5": {
        "model_type": "t5", "d_model": 256, "d_kv": 32, "d_ff": 512, "num_layers": 3, "num_heads": 8,
        "vocab_size": 4000,
    },
}  # fmt: skip

PRECISIONS = (
    {"weights": "float32"},
    {"weights": "bfloat16"},
    {"weights": "float32", "compute": "bfloat16", "autocast": True},
    {"weights": "float32", "compute": "float16", "autocast": True, "grad_scaler": True},
    {"weights": "bfloat16", "autocast": True},
)
CASES = settings(max_examples=25, deadline=None, derandomize=True)

configs = st.sampled_from(sorted(CONFIGS))


@st.composite
def setups(draw: st.DrawFn) -> Setup:
    setup = Setup(
        micro_batch=draw(st.integers(1, 4)),
        length=draw(st.integers(1, 40)) * 8,
        accumulation=draw(st.sampled_from((1, 2, 8))),
        attention=draw(st.sampled_from(("sdpa", "eager"))),
        padded=draw(st.booleans()),
        checkpointing=draw(st.sampled_from(("none", "full"))),
        reentrant=draw(st.booleans()),
        activation_offload=draw(st.sampled_from((False, False, True))),
        loss=draw(st.sampled_from(("full", "full", "liger", "trl-fused", "trl-chunked"))),
        objective=draw(st.sampled_from(("sft", "sft", "dpo"))),
        kernels=draw(st.sampled_from(("none", "liger"))),
        optimizer=draw(st.sampled_from(("adamw_torch", "adamw_torch_fused", "adamw_bnb_8bit", "adafactor", "sgd"))),
        **draw(st.sampled_from(PRECISIONS)),
    )
    if draw(st.booleans()):
        dropout = draw(st.sampled_from((0.0, 0.1)))
        setup = replace(setup, method="lora", adapter_rank=draw(st.sampled_from((4, 16))), adapter_dropout=dropout)
        if draw(st.booleans()):
            setup = replace(setup, method="qlora", quantization_bits=4, double_quantization=draw(st.booleans()))
    return setup


def peak(name: str, setup: Setup) -> int:
    return estimate(CONFIGS[name], setup).allocated


@CASES
@given(configs, setups())
def test_two_layers_stand_for_all_of_them(name: str, setup: Setup) -> None:
    short, full = (
        Walk((found := family(CONFIGS[name])).architecture, found.config, setup, every) for every in (False, True)
    )
    assert short.run() == full.run()


@CASES
@given(configs, setups())
def test_after_backward_exactly_the_gradients_live(name: str, setup: Setup) -> None:
    found = family(CONFIGS[name])
    walk = Walk(found.architecture, found.config, replace(setup, accumulation=1))
    walk.run()
    gradients = sum(-(-p.elements * {"float32": 4, "bfloat16": 2}[p.dtype] // 512) * 512 * p.copies
                    for p in walk.parameters.values() if p.trained)  # fmt: skip
    assert walk.tape.memory.current == gradients
    assert walk.tape.created == walk.tape.played


@CASES
@given(configs, setups())
def test_a_larger_batch_never_needs_less(name: str, setup: Setup) -> None:
    assert peak(name, setup) <= peak(name, replace(setup, micro_batch=2 * setup.micro_batch))


@CASES
@given(configs, setups())
def test_a_longer_sequence_never_needs_less(name: str, setup: Setup) -> None:
    assert peak(name, setup) <= peak(name, replace(setup, length=2 * setup.length))


@CASES
@given(configs, setups())
def test_a_higher_rank_never_needs_less(name: str, setup: Setup) -> None:
    assert peak(name, setup) <= peak(name, replace(setup, adapter_rank=2 * setup.adapter_rank))


@CASES
@given(configs, setups())
def test_accumulation_beyond_two_changes_nothing(name: str, setup: Setup) -> None:
    assert peak(name, replace(setup, accumulation=2)) == peak(name, replace(setup, accumulation=9))


@CASES
@given(configs, setups())
def test_checkpointing_never_keeps_more_activations(name: str, setup: Setup) -> None:
    found = family(CONFIGS[name])
    kept = []
    for kind in ("none", "full"):
        plain = replace(setup, checkpointing=kind, activation_offload=False)
        walk = Walk(found.architecture, found.config, plain)
        walk.run()
        kept.append(walk.forward_bytes)
    assert kept[1] <= kept[0]


@CASES
@given(st.sampled_from(("llama", "gemma2")), setups(), st.sampled_from(("fsdp", "fsdp2", "zero1", "zero2", "zero3")))
def test_more_shards_never_need_more(name: str, setup: Setup, kind: str) -> None:
    plain = replace(setup, method="full", quantization_bits=0, autocast=False, grad_scaler=False, sharding=kind)
    plain = replace(plain, compute="bfloat16", reduce_bucket=100_000, prefetch_bucket=100_000)
    needs = [peak(name, replace(plain, data=world)) for world in (2, 4, 16, 64)]
    slack = 512 * 200  # shards are rounded up, one parameter each
    assert all(after <= before + slack for before, after in pairwise(needs))


@CASES
@given(st.sampled_from(("llama", "gemma2", "mixtral")), setups())
def test_quantization_never_needs_more_for_weights(name: str, setup: Setup) -> None:
    found = family(CONFIGS[name])
    sizes = []
    for bits in (0, 8, 4):
        walk = Walk(found.architecture, found.config, replace(setup, method="qlora", quantization_bits=bits))
        walk.run()
        sizes.append(sum(p.nbytes * p.copies for p in walk.parameters.values()))
    assert sizes == sorted(sizes, reverse=True)


@CASES
@given(configs, setups())
def test_every_phase_is_counted_in_whole_bytes(name: str, setup: Setup) -> None:
    found = estimate(CONFIGS[name], setup)
    assert found.phases[found.peak_phase] == found.allocated == max(found.phases.values())
    assert all(isinstance(size, int) and size >= 0 for size in found.phases.values())
    assert found.trainable <= found.parameters
