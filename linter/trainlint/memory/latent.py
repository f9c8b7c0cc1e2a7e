"""DeepSeek's multi-head latent attention: keys and values are expanded from one small latent a token.

Sources: transformers 5.24, models/deepseek_v2/modeling_deepseek_v2.py, models/deepseek_v3/modeling_deepseek_v3.py;
torch 2.13, torch/csrc/autograd/functions/tensor.cpp (CopySlices).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlint.memory.graph import Node, Storage, View

if TYPE_CHECKING:
    from trainlint.memory.walk import Walk


def complex_rotary(walk: Walk, dim: int) -> Storage:
    """Rotations of all positions as complex numbers: eight bytes for each pair of elements."""
    return walk.tape.new(walk.length * int(dim), "float32")


def complex_rope(walk: Walk, x: Storage, table: Storage) -> Storage:
    """Rotation in fp32 as complex numbers, cast back."""
    tape = walk.tape
    wide = tape.cast(x, "float32")
    same = (x.elements, "float32")
    turned = tape.op("mul", (wide,), x.elements, "float32", [table], (same,))
    del wide
    return tape.cast(turned, x.dtype)


def latent_keys(walk: Walk, content: Storage, turned: Storage, heads: int, dim: int, turned_dim: int) -> Storage:
    """Keys of all heads: content beside the one rotated part, copied into a new tensor slice by slice.

    Each copy's backward makes one more whole gradient and a clone of the slice.
    """
    tape = walk.tape
    elements = walk.tokens * heads * (dim + turned_dim)
    keys = tape.new(elements, content.dtype)
    spread = View(turned, walk.tokens * heads * turned_dim, turned.dtype, _expanded(walk, turned))
    whole = (elements, content.dtype)
    first = View(
        keys, elements, content.dtype, tape.node("copy_slice", (content,), [], ((content.elements, content.dtype),))
    )
    if first.node is None and spread.node is None:
        return keys
    part = (spread.elements, spread.dtype)
    second = tape.node("copy_slice", (first, spread), [], (whole, part))
    return View(keys, elements, content.dtype, second)


def _expanded(walk: Walk, value: Storage) -> Node | None:
    return walk.tape.node("expand", (value,), [], ((value.elements, value.dtype),))
