"""A model of which only the parameter count is known: its states by that count, activations of a usual block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from trainlint.memory.estimate import Estimate

USUAL = (
    (12, 768), (24, 1024), (22, 2048), (28, 3072), (32, 4096), (40, 5120), (60, 6656), (80, 8192), (88, 12288),
    (118, 16384),
)  # fmt: skip
"""Layers and width that decoders usually have, from 0.1 to 400 billion parameters."""
VOCABULARY = 65536
"""Between the 32 thousand of Llama 2 and the 152 thousand of Qwen 2.5."""
ROUNDED = 0.08
"""How far a count that a name gives (7B) may be off."""
MOVING = (0.4, 2.2)
"""What comes and goes, as factors of ours: vocabularies of 32 to 256 thousand, wide and deep blocks, experts."""


def usual(parameters: int) -> Mapping[str, object]:
    """A config like Llama's with that many parameters, to a thousandth: the inner width takes what is left."""
    layers, width = min(USUAL, key=lambda shape: abs(_size(*shape) - parameters))
    heads = max(1, width // 128)
    kv_heads = max(1, heads // 4)
    fixed = 2 * VOCABULARY * width + layers * 2 * width * (heads + kv_heads) * (width // heads)
    inner = (parameters - fixed) // (3 * layers * width)
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "num_hidden_layers": layers,
        "hidden_size": width,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": max(width, inner // 8 * 8),
        "vocab_size": VOCABULARY,
        "tie_word_embeddings": False,
    }


def _size(layers: int, width: int) -> int:
    return 13 * layers * width * width + 2 * VOCABULARY * width


def widened(found: Estimate, rounded: bool) -> Estimate:
    """The stand-in's estimate, between what other shapes of that size would need."""
    moving = found.allocated - found.held
    spread = ROUNDED if rounded else 0.0
    low, high = found.low / found.allocated, found.high / found.allocated
    return replace(
        found,
        low=int((found.held * (1 - spread) + MOVING[0] * moving) * low),
        high=int((found.held * (1 + spread) + MOVING[1] * moving) * high),
    )
