"""Attention masks and biases that all layers see. Source: transformers 5.24, masking_utils.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlint.memory.graph import Node, Storage, View

if TYPE_CHECKING:
    from trainlint.memory.walk import Walk


def causal_mask(walk: Walk, x: Storage, may_pad: int = 1, window: int = 0) -> Storage | None:
    """None where sdpa's is_causal says it all; a sliding window that the sequence reaches needs one.

    `may_pad` 2: the model hands in a mask of its own, padded or not; 0: it never carries the padding.
    """
    tape = walk.tape
    elements = walk.tokens * walk.length
    setup = walk.setup
    if setup.attention == "eager":
        return tape.new(elements, x.dtype)
    if setup.attention == "flash":
        return None
    if (walk.padded and may_pad) or may_pad == 2:
        return tape.new(elements, "bool")
    if window and walk.length >= window:
        return View(tape.new(elements // walk.batch, "bool"), elements, "bool")
    return None


def bidirectional_mask(walk: Walk, x: Storage) -> Storage | None:
    """Only padding needs one."""
    if not walk.padded or walk.setup.attention == "flash":
        return None
    return walk.tape.new(walk.tokens * walk.length, x.dtype if walk.setup.attention == "eager" else "bool")


def relative_bias(walk: Walk, name: str, buckets: int, heads: int, length: int) -> Storage:
    """T5's learned bias of every query and key: bucket numbers (int64) and a table lookup.

    Made inside the first block, so checkpointing drops the bucket numbers.
    """
    tape = walk.tape
    parameter = walk.parameter(name, "positions", (buckets, heads))
    index = [] if walk.setup.checkpointing != "none" else [tape.new(length * length, "int64")]
    whole = ((parameter.elements, parameter.dtype),)
    return tape.op("relative_bias", (parameter.tensor,), length * length * heads, parameter.dtype, [*index], whole)


def zeros(walk: Walk, elements: int) -> Storage:
    """T5's cross attention bias of zeros, which checkpointing makes require a gradient."""
    tape = walk.tape
    tensor = tape.new(elements, walk.compute)
    if walk.setup.checkpointing == "none" or not tape.recording:
        return tensor
    tape.created += 1
    return View(tensor, elements, tensor.dtype, Node(-tape.created, "input", None))
