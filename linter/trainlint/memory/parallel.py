"""Model parallelism as smaller sizes: what one device of a tensor, pipeline, context or expert group holds.

Read from Megatron-LM's and torchtitan's plans, not simulated: each adds its own spread to the estimate.
"""

from __future__ import annotations

from trainlint.memory.setup import Setup

BY_TENSOR = ("heads", "kv_heads", "ffn", "vocab", "expert_ffn", "shared_ffn", "enc_ffn", "dec_ffn")
"""Sizes that tensor parallelism divides: heads and inner widths of a block, rows of the vocabulary."""

BY_PIPELINE = ("layers", "enc_layers", "dec_layers")

SPREADS = {
    "tensor": (0.85, 1.2, "tensor parallelism: residual stream whole, heads, inner widths and vocabulary divided"),
    "pipeline": (0.75, 1.35, "pipeline parallelism: a stage holds its layers, and the micro-batches in flight"),
    "context": (0.85, 1.2, "context parallelism: each device holds its part of the sequence"),
    "expert": (0.85, 1.3, "expert parallelism: each device holds its experts, tokens spread evenly"),
}
"""For each kind, the factors between which the true figure lies, and what is said of it."""


def divided(sizes: dict[str, object], setup: Setup) -> None:
    """Shrink the sizes to those of one device."""
    for names, degree in (
        (BY_TENSOR, setup.tensor),
        (BY_PIPELINE, setup.pipeline),
        (("experts_count",), setup.expert),
    ):
        if degree > 1:
            for name in names:
                value = sizes.get(name)
                if isinstance(value, int) and value > 1:
                    sizes[name] = max(1, -(-value // degree))
    heads, kv_heads = sizes.get("heads"), sizes.get("kv_heads")
    if setup.tensor > 1 and isinstance(heads, int) and isinstance(kv_heads, int):
        while heads % kv_heads:
            kv_heads -= 1
        sizes["kv_heads"] = kv_heads


def spreads(setup: Setup) -> list[tuple[float, float, str]]:
    """What each degree above one adds to the interval."""
    return [spread for name, spread in SPREADS.items() if getattr(setup, name) > 1]
