"""Attention with linear position biases, written out: BLOOM and MPT. Scores of B * H * T * T are made at every step.

What the module's Python still names when it calls its output projection is returned as a list, to be kept until then.
Sources: transformers 5.24, models/bloom/modeling_bloom.py, models/mpt/modeling_mpt.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlint.memory.graph import Storage
from trainlint.memory.primitives import add, bmm, copy, dropout, scale, slice_, softmax, split

if TYPE_CHECKING:
    from trainlint.memory.walk import Walk

Held = list[Storage | None]


def alibi(walk: Walk, heads: int, length: int, batch: int = 1, dtype: str = "") -> Storage:
    """The biases: one number for each head and key."""
    return walk.tape.new(batch * heads * length, dtype or walk.weights)


def bloom_attention(
    walk: Walk, qkv: Storage, biases: Storage, mask: Storage | None, heads: int, dim: int, probability: float
) -> tuple[Storage, Held]:
    """`baddbmm(alibi, q, k)`, an fp32 softmax, its copy in the input's dtype."""
    tape = walk.tape
    part = qkv.elements // 3
    q, k, v = (slice_(tape, qkv, part) for _ in range(3))
    if walk.batch > 1:  # heads of one sample merge with the batch only by a copy
        q, k, v = copy(tape, q), copy(tape, k), copy(tape, v)
    dtype = q.dtype
    elements = walk.batch * heads * walk.length * walk.length
    left, right, bias = tape.lower(q), tape.lower(k), tape.lower(biases)
    both = (part, left.dtype)
    saved = [right, left] if left.node is not None else []
    formula = (None, both, both)
    scores: Storage = tape.op("baddbmm", (bias, left, right), elements, left.dtype, saved, formula, scratch=(both,))
    del bias
    weights = add(tape, scores, mask) if mask is not None else scores
    probabilities = tape.cast(softmax(tape, weights, "float32"), dtype)
    probabilities = dropout(tape, probabilities, probability if walk.training else 0.0)
    walk.block_held.append(probabilities)
    context = copy(tape, bmm(tape, probabilities, v, part))
    return context, [qkv, q, k, v, scores, weights, probabilities]


def mpt_attention(
    walk: Walk, qkv: Storage, biases: Storage, mask: Storage | None, heads: int, dim: int, probability: float
) -> tuple[Storage, Held]:
    """fp32 biases raise the scores to fp32; the mask is filled in by its own step."""
    tape = walk.tape
    part = qkv.elements // 3
    q, k, v = split(tape, qkv, [part] * 3)
    elements = walk.batch * heads * walk.length * walk.length
    left, right = tape.lower(q), tape.lower(k)
    if walk.batch > 1:
        left, right = copy(tape, left), copy(tape, right)
    scores = bmm(tape, left, right, elements)
    del left, right
    scores = scale(tape, scores)
    scores = add(tape, scores, biases)
    if mask is not None:
        same = (elements, scores.dtype)
        scores = tape.op("masked_fill", (scores,), elements, scores.dtype, [mask], (same,))
    weights = tape.cast(softmax(tape, tape.cast(scores, "float32")), v.dtype)
    weights = dropout(tape, weights, probability if walk.training else 0.0)
    walk.block_held.append(weights)
    value = tape.lower(v)
    if walk.batch > 1:
        value = copy(tape, value)
    context = bmm(tape, weights, value, part)
    del value
    context = copy(tape, context)
    return context, [qkv, q, k, v, scores, weights]


def bloom_gelu(walk: Walk, x: Storage) -> Storage:
    """tanh-GELU in one autograd function: keeps its input; four temporaries forward, four more backward."""
    tape = walk.tape
    held = [tape.new(x.elements, x.dtype) for _ in range(4)]
    held.clear()
    same = (x.elements, x.dtype)
    return tape.op("bloom_gelu", (x,), x.elements, x.dtype, [x], (same,), scratch=(same, same, same, same))


def boolean_mask(walk: Walk, x: Storage) -> Storage:
    """MPT's causal mask, made in the stream's dtype and turned into booleans."""
    floats = walk.tape.new(walk.tokens * walk.length, x.dtype)
    mask = walk.tape.new(floats.elements, "bool")
    del floats
    return mask
