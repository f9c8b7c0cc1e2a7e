"""The kinds of operation that an architecture file may name, each as the chain of torch operations its module runs.

Regimes (fp32, autocast, 16-bit weights, frozen, adapted, quantized) are nowhere coded here: they follow from dtypes and
from which inputs are trained. Sources: transformers 5.24, models/*/modeling_*.py, activations.py, masking_utils.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from trainlint.memory import (
    activations,
    adapters,
    alibi,
    attention,
    disentangled,
    embeddings,
    experts,
    latent,
    losses,
    masks,
    norms,
    positions,
)
from trainlint.memory.graph import Storage
from trainlint.memory.primitives import add, cat, copy, mul, scale, slice_, split

if TYPE_CHECKING:
    from trainlint.memory.walk import Walk


def first_token(walk: Walk, x: Storage, width: int) -> Storage:
    """`x[:, 0]`."""
    return slice_(walk.tape, x, walk.batch * width)


def token_slice(walk: Walk, x: Storage, width: int) -> Storage:
    """`x[..., :width]`."""
    return slice_(walk.tape, x, walk.tokens * width)


def token_split(walk: Walk, x: Storage, *widths: int) -> list[Storage]:
    """`x.split(widths, -1)`."""
    return split(walk.tape, x, [walk.tokens * width for width in widths])


Kind = Callable[..., object]

KINDS: dict[str, Kind] = {
    "activation": activations.activation,
    "add": lambda walk, left, right: add(walk.tape, left, right),
    "alibi": alibi.alibi,
    "attention": attention.attention,
    "bidirectional_mask": masks.bidirectional_mask,
    "bloom_attention": alibi.bloom_attention,
    "bloom_gelu": alibi.bloom_gelu,
    "boolean_mask": alibi.boolean_mask,
    "buffer": lambda walk, elements: walk.tape.new(elements, walk.weights),
    "cast": lambda walk, x, dtype: walk.tape.cast(x, dtype),
    "cast_like": lambda walk, x, like: walk.tape.cast(x, like.dtype),
    "cat": lambda walk, *parts: cat(walk.tape, parts),
    "causal_loss": losses.causal_loss,
    "causal_mask": masks.causal_mask,
    "centred_norm": norms.centred_norm,
    "class_loss": losses.plain_loss,
    "complex_rope": latent.complex_rope,
    "complex_rotary": latent.complex_rotary,
    "convolution": embeddings.convolution,
    "copy": lambda walk, x: copy(walk.tape, x),
    "disentangled_attention": disentangled.disentangled_attention,
    "dropout": activations.drop_out,
    "embedding": embeddings.embedding,
    "experts": experts.experts,
    "first_token": first_token,
    "frozen": embeddings.frozen,
    "gated_linear": activations.gated_linear,
    "head": losses.head,
    "image_input": embeddings.image_input,
    "latent_keys": latent.latent_keys,
    "layernorm": norms.layernorm,
    "linear": adapters.linear,
    "mpt_attention": alibi.mpt_attention,
    "mul": lambda walk, left, right: mul(walk.tape, left, right),
    "ones_mask": disentangled.ones_mask,
    "plain_loss": losses.plain_loss,
    "relative_bias": masks.relative_bias,
    "repeat": lambda walk, x, times: attention.expand_kv(walk, x, times),
    "relative_positions": disentangled.relative_positions,
    "relative_table": disentangled.relative_table,
    "rmsnorm": norms.rmsnorm,
    "rope": positions.rope,
    "rope_cat": positions.rope_cat,
    "rotary": positions.rotary,
    "scale": lambda walk, x, wanted=1: scale(walk.tape, x) if wanted else x,
    "slice": token_slice,
    "split": token_split,
    "token_mask": disentangled.token_mask,
    "to_weights": lambda walk, x: walk.tape.cast(x, walk.weights),
    "weight": embeddings.weight,
    "zeros": masks.zeros,
}
"""Every name that an architecture file may call."""
