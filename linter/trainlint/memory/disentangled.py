"""DeBERTa's disentangled attention: content to content, content to position and position to content scores.

B batch, H heads, T tokens, R rows of the relative embedding (twice the span). Source: transformers 5.24,
models/deberta_v2/modeling_deberta_v2.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlint.memory import adapters
from trainlint.memory.graph import PASS, Storage
from trainlint.memory.primitives import add, bmm, copy, dropout, scale, softmax

if TYPE_CHECKING:
    from trainlint.memory.walk import Walk


def relative_positions(walk: Walk, length: int) -> Storage:
    """int64 distances of every query and key."""
    return walk.tape.new(length * length, "int64")


def relative_table(walk: Walk, name: str, rows: int, hidden: int) -> Storage:
    """The relative embedding's whole table."""
    return walk.parameter(name, "positions", (rows, hidden)).tensor


def ones_mask(walk: Walk) -> Storage:
    """The token mask's outer product: int64 where the batch carries one, else fp32 ones."""
    return walk.tape.new(walk.tokens * walk.length, "int64" if walk.padded else "float32")


def token_mask(walk: Walk, x: Storage) -> Storage:
    """`x * mask`: keeps the mask, one number a token."""
    mask = walk.tape.new(walk.tokens, x.dtype)
    return walk.tape.op("mul", (x,), x.elements, x.dtype, [mask], ((x.elements, x.dtype),))


def disentangled_attention(
    walk: Walk,
    x: Storage,
    table: Storage,
    positions: Storage,
    mask: Storage,
    heads: int,
    dim: int,
    rows: int,
    p_attention: float,
    p_hidden: float,
    prefix: str = "attention.self",
    shared: int = 1,
) -> Storage:
    """The context of all heads; projections of the positions are those of the content where `shared`."""
    tape = walk.tape
    hidden = heads * dim
    batch, length = walk.batch, walk.length
    scores_size = batch * heads * length * length

    def projected(value: Storage, name: str) -> Storage:
        raw = adapters.linear(walk, value, f"{prefix}.{name}", hidden, hidden, 1)
        return copy(tape, raw)

    q, k, v = projected(x, "query_proj"), projected(x, "key_proj"), projected(x, "value_proj")
    scaled = scale(tape, k)
    scores = bmm(tape, q, scaled, scores_size)
    del scaled
    table = dropout(tape, table, p_hidden if walk.training else 0.0)
    query_name, key_name = ("query_proj", "key_proj") if shared else ("pos_query_proj", "pos_key_proj")
    pos_q = _repeated(walk, projected(table, query_name))
    pos_k = _repeated(walk, projected(table, key_name))
    wide = batch * heads * length * rows
    bias = _gathered(walk, bmm(tape, q, pos_k, wide), positions, scores_size)
    bias = scale(tape, bias)
    bias = tape.op("add", (bias,), bias.elements, bias.dtype, [], (PASS,))
    other = _gathered(walk, bmm(tape, k, pos_q, wide), positions, scores_size)
    other = scale(tape, other)
    joined = tape.node("add_", (bias, other), [], (PASS, PASS))
    if joined is not None:
        bias.node = joined
    del other, pos_q, pos_k, joined
    scores = add(tape, scores, bias)
    kept = tape.new(mask.elements, "bool")
    absent = tape.new(mask.elements, "bool")
    same = (scores_size, scores.dtype)
    scores = tape.op("masked_fill", (scores,), scores_size, scores.dtype, [absent], (same,))
    del absent
    probabilities = softmax(tape, scores)
    probabilities = dropout(tape, probabilities, p_attention if walk.training else 0.0)
    context = bmm(tape, probabilities, v, batch * length * hidden)
    context = copy(tape, context)
    del kept
    return context


def _repeated(walk: Walk, value: Storage) -> Storage:
    """`repeat(B, 1, 1)`: a copy for each sample, even where there is one; its backward sums."""
    elements = value.elements * walk.batch
    return walk.tape.op("repeat", (value,), elements, value.dtype, [], ((value.elements, value.dtype),))


def _gathered(walk: Walk, scores: Storage, positions: Storage, elements: int) -> Storage:
    """Scores by distance to scores by key: keeps the wide scores and the clamped distances."""
    tape = walk.tape
    shifted = tape.new(positions.elements, "int64")
    index = tape.new(positions.elements, "int64")
    del shifted
    whole = ((scores.elements, scores.dtype),)
    return tape.op("gather", (scores,), elements, scores.dtype, [scores, index], whole)
