"""Optimizers by the names of other frameworks → the Hugging Face `optim` name with the same states and step."""

from __future__ import annotations

DEEPSPEED: dict[str, str] = {
    "adam": "adamw_torch_fused",
    "adamw": "adamw_torch_fused",
    "sgd": "sgd",
    "adagrad": "adagrad",
    "lion": "lion_32bit",
    "lamb": "lamb",
    "fusedlamb": "lamb",
    "onebitadam": "onebit_adam",
    "zerooneadam": "zero_one_adam",
    "onebitlamb": "onebit_lamb",
    "muon": "muon",
    "muadam": "adamw_torch_fused",
    "muadamw": "adamw_torch_fused",
}
"""`optimizer.type` of a DeepSpeed config. Adam is FusedAdam on the device and DeepSpeedCPUAdam when offloaded, neither
with temporaries [deepspeed 0.19.8 runtime/engine.py _configure_basic_optimizer]."""


def deepspeed(name: object) -> str | None:
    """The `optim` name for an `optimizer.type`, or None where it is another optimizer."""
    return DEEPSPEED.get(name.lower()) if isinstance(name, str) else None
