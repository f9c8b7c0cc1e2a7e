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

CLASSES: dict[str, str] = {
    "Adam": "adamw_torch",
    "AdamW": "adamw_torch",
    "SGD": "sgd",
    "RMSprop": "rmsprop",
    "Adagrad": "adagrad",
    "Adafactor": "adafactor",
    "FusedAdam": "adamw_torch_fused",
    "DeepSpeedCPUAdam": "adamw_torch_fused",
    "AdamW8bit": "adamw_bnb_8bit",
    "Adam8bit": "adamw_bnb_8bit",
    "PagedAdamW": "paged_adamw_32bit",
    "PagedAdamW32bit": "paged_adamw_32bit",
    "PagedAdamW8bit": "paged_adamw_8bit",
    "Lion8bit": "lion_8bit",
    "PagedLion8bit": "paged_lion_8bit",
    "AdamW4bit": "ao_adamw_4bit",
    "AdamWFp8": "ao_adamw_fp8",
    "Muon": "muon",
}
"""Optimizer classes → `optim` names; torchao's `AdamW8bit` is `ao_adamw_8bit` (see `by_class`)."""


def by_class(path: object, fused: bool = False) -> str | None:
    """The `optim` name for a class, written with its module or bare, or None where it is another optimizer."""
    if not isinstance(path, str):
        return None
    module, _, name = path.rpartition(".")
    if name == "AdamW8bit" and module.startswith("torchao"):
        return "ao_adamw_8bit"
    found = CLASSES.get(name)
    return "adamw_torch_fused" if found == "adamw_torch" and fused else found


def deepspeed(name: object) -> str | None:
    """The `optim` name for an `optimizer.type`, or None where it is another optimizer."""
    return DEEPSPEED.get(name.lower()) if isinstance(name, str) else None
