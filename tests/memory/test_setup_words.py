from __future__ import annotations

import pytest

from trainlint.memory import Setup


def test_words_of_a_run_become_knobs() -> None:
    words = {
        "method": "qlora",
        "precision": {"weights": "bfloat16", "compute": "bfloat16", "autocast": True},
        "adapter": {"rank": 32, "targets": ["q_proj", "v_proj"], "dropout": 0.05},
        "quantization": {"bits": 4, "type": "nf4", "double": True},
        "batch": {"micro": 2, "accumulation": 8},
        "length": {"max": 4096, "padded": True},
        "checkpointing": {"kind": "full", "reentrant": True, "every": 2},
        "optimizer": {"name": "adamw_bnb_8bit"},
        "sharding": {"kind": "fsdp2", "reshard_after_forward": False, "reduce_dtype": "bf16"},
        "parallel": {"data": 8, "tensor": 2},
        "clip": None,
    }
    setup = Setup.from_words(words)
    assert setup.adapter_targets == ("q_proj", "v_proj")
    assert (setup.micro_batch, setup.accumulation, setup.length, setup.padded) == (2, 8, 4096, True)
    assert (setup.checkpointing, setup.reentrant, setup.checkpoint_every) == ("full", True, 2)
    assert (setup.sharding, setup.reshard_after_forward, setup.reduce_dtype) == ("fsdp2", False, "bfloat16")
    assert (setup.data, setup.tensor, setup.clip) == (8, 2, None)
    assert setup.autocast_dtype == "bfloat16"


@pytest.mark.parametrize(("said", "kind"), [(True, "full"), (False, "none"), ("selective", "selective")])
def test_checkpointing_may_be_said_shortly(said: object, kind: str) -> None:
    assert Setup.from_words({"checkpointing": said}).checkpointing == kind


def test_unknown_words_and_unknown_values_are_left_alone() -> None:
    assert Setup.from_words({"schedule": {"warmup": 3}, "batch": {"micro": None}}) == Setup()


@pytest.mark.parametrize(
    ("objective", "method", "kind"),
    [("sft", "full", "none"), ("dpo", "full", "copy"), ("dpo", "lora", "adapter-off"), ("orpo", "lora", "none")],
)
def test_the_reference_follows_from_the_objective(objective: str, method: str, kind: str) -> None:
    assert Setup(objective=objective, method=method).reference_kind == kind
