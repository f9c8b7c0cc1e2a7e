"""Rotary positions: tables for all layers, and the rotation of queries and keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlint.memory import fused
from trainlint.memory.graph import Storage
from trainlint.memory.primitives import add, cat, mul, scale, slice_

if TYPE_CHECKING:
    from trainlint.memory.walk import Walk


def rotary(walk: Walk, dim: float, dtype: str = "") -> tuple[Storage, Storage]:
    """Cosine and sine tables of all positions, once for all layers; they do not grow with the batch."""
    elements = walk.length * int(dim)
    return walk.tape.new(elements, dtype or walk.weights), walk.tape.new(elements, dtype or walk.weights)


def rope(walk: Walk, x: Storage, cos: Storage, sin: Storage, share: float = 1.0) -> Storage:
    """`x * cos + rotate_half(x) * sin` on a share of each head: keeps only cos and sin."""
    tape = walk.tape
    if share >= 1:
        return rotated(walk, x, cos, sin)
    part = int(x.elements * share)
    turned, rest = slice_(tape, x, part), slice_(tape, x, x.elements - part)
    return cat(tape, [rotated(walk, turned, cos, sin), rest])


def rotated(walk: Walk, x: Storage, cos: Storage, sin: Storage) -> Storage:
    """The rotation itself."""
    tape = walk.tape
    if walk.setup.kernels == "liger":
        return fused.rope(walk, x)
    straight = mul(tape, x, cos)
    first, second = slice_(tape, x, x.elements // 2), slice_(tape, x, x.elements // 2)
    half = cat(tape, [scale(tape, second), first])
    crossed = mul(tape, half, sin)
    del half
    return add(tape, straight, crossed)


def rope_cat(walk: Walk, x: Storage, cos: Storage, sin: Storage) -> Storage:
    """phi-3: rotates all of the head, and concatenates with the nothing that is left."""
    return cat(walk.tape, [rotated(walk, x, cos, sin)])
