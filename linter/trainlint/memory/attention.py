"""Attention: which kernel runs decides everything.

Sizes: B batch, H query heads, K key heads, T queries, S keys, D head dimension. Sources: torch 2.13,
aten/src/ATen/native/transformers/cuda/sdp_utils.cpp (which kernel), cuda/attention.cu and attention_backward.cu,
transformers/attention.cpp (the math kernel, masks); flash-attention 2, csrc/flash_attn/flash_api.cpp (mha_bwd).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlint.memory.account import SIZES
from trainlint.memory.graph import PASS, Entry, Storage, View
from trainlint.memory.primitives import add, bmm, copy, dropout, scale, softmax, unary

if TYPE_CHECKING:
    from trainlint.memory.walk import Walk

HeadMajor = tuple[int, int, int]
"""Whether q, k, v come laid out head by head; a batched matmul copies those that do not."""


def ceil_to(number: int, multiple: int) -> int:
    """The next multiple."""
    return -(-number // multiple) * multiple


class Shape:
    """Sizes of one attention call."""

    __slots__ = ("batch", "dim", "heads", "keys", "kv_heads", "queries", "times", "value_dim")

    def __init__(
        self, q: Storage, heads: int, kv_heads: int, dim: int, queries: int, keys: int, value_dim: int
    ) -> None:
        self.batch = q.elements // (heads * dim * queries)
        self.heads = heads
        self.kv_heads = kv_heads
        self.dim = dim
        self.value_dim = value_dim
        self.queries = queries
        self.keys = keys
        self.times = heads // kv_heads

    @property
    def scores(self) -> int:
        """Elements of the score matrix."""
        return self.batch * self.heads * self.queries * self.keys

    @property
    def output(self) -> int:
        """Elements of the result."""
        return self.batch * self.heads * self.queries * self.value_dim


def attention(
    walk: Walk,
    q: Storage,
    k: Storage,
    v: Storage,
    heads: int,
    kv_heads: int,
    dim: int,
    queries: int,
    keys: int,
    probability: float = 0.0,
    causal: int = 1,
    mask: Storage | None = None,
    softcap: int = 0,
    softmax_dtype: str = "float32",
    contiguous: HeadMajor = (0, 0, 0),
    bias: Storage | None = None,
    cast_probs: int = 1,
    bias_permuted: int = 1,
    value_dim: int = 0,
    ungrouped: int = 0,
) -> Storage:
    """`softmax(q k / sqrt(D) + mask) v`, by the kernel that the run's implementation and dtypes lead to."""
    tape = walk.tape
    shape = Shape(q, heads, kv_heads, dim, queries, keys, value_dim or dim)
    probability = probability if walk.training else 0.0
    if walk.setup.attention == "eager":
        return eager(walk, shape, q, k, v, probability, mask, softcap, softmax_dtype, contiguous, bias, cast_probs)
    flash_here = walk.setup.flash_available
    grouped = shape.times > 1 and mask is None and bias is None and dim <= 256 and flash_here
    if ungrouped and shape.times > 1 and walk.setup.attention != "flash":  # called without enable_gqa: no fused kernel
        return math(walk, shape, tape.lower(q), tape.lower(k), tape.lower(v), causal and mask is None, mask)
    if shape.times > 1 and not grouped and walk.setup.attention != "flash":
        k, v = expand_kv(walk, k, shape.times, kv_heads == 1), expand_kv(walk, v, shape.times, kv_heads == 1)
    if bias is not None:  # T5: bias and mask become one additive mask
        if mask is not None or causal:
            bias = where(walk, bias, shape.batch if mask is not None else 1)
        if bias_permuted:
            bias = copy(tape, bias)  # [T, T, heads] in memory: contiguous() copies, in every layer
        mask = bias
    q, k, v = tape.lower(q), tape.lower(k), tape.lower(v)
    if mask is not None and mask.dtype == "float32":
        mask = tape.lower(mask)
    if walk.setup.attention == "flash" and bias is None:
        q, k, v = (halved(walk, part) for part in (q, k, v))
        return flash(walk, shape, q, k, v, shape.times > 1)
    short = SIZES[q.dtype] == 2
    if mask is None and short and dim <= 256 and flash_here and shape.value_dim == dim:
        return flash(walk, shape, q, k, v, grouped)
    if grouped or dim > 512:
        return math(walk, shape, q, k, v, causal)
    return efficient(walk, shape, q, k, v, mask)


def expand_kv(walk: Walk, x: Storage, times: int, one: bool = False) -> Storage:
    """repeat_kv copies, unless there is one key head only: then the expansion stays a view."""
    if times == 1:
        return x
    summed: tuple[Entry, ...] = ((x.elements, x.dtype),)
    if one:
        return View(x, x.elements * times, x.dtype, walk.tape.node("expand_kv", (x,), [], summed))
    return walk.tape.op("repeat_kv", (x,), x.elements * times, x.dtype, [], summed)


def halved(walk: Walk, x: Storage) -> Storage:
    """The package knows no fp32: transformers casts to the compute dtype (modeling_flash_attention_utils.py)."""
    return walk.tape.cast(x, walk.compute if SIZES[walk.compute] == 2 else "bfloat16") if SIZES[x.dtype] == 4 else x


def where(walk: Walk, bias: Storage, batch: int = 1) -> Storage:
    """The mask written into an additive bias."""
    condition = walk.tape.new(bias.elements // 8 or 1, "bool")
    formula = ((bias.elements * batch, bias.dtype),)
    return walk.tape.op("where", (bias,), bias.elements * batch, bias.dtype, [condition], formula)


def flash(walk: Walk, shape: Shape, q: Storage, k: Storage, v: Storage, grouped: bool) -> Storage:
    """16-bit, no mask, heads up to 256: keeps q, k, v, the result and one fp32 number a row.

    Backward: an fp32 accumulator of dq, one more number a row, and dk, dv expanded over query heads when grouped.
    """
    tape, dtype = walk.tape, q.dtype
    result = tape.new(q.elements, dtype)
    statistics = tape.new(shape.batch * shape.heads * shape.queries, "float32")
    rows = ceil_to(shape.queries, 128)
    width = ceil_to(shape.dim, 32 if shape.dim <= 128 else 64)
    scratch = [
        (shape.batch * shape.heads * rows, "float32"),
        (shape.batch * rows * shape.heads * width, "float32"),
    ]
    if grouped:
        expanded = (shape.batch * shape.keys * shape.heads * shape.dim, dtype)
        scratch += [expanded, expanded]
    formula = ((q.elements, dtype), (k.elements, dtype), (v.elements, dtype))
    result.node = tape.node("flash", (q, k, v), [q, k, v, result, statistics], formula, scratch)
    return result


def efficient(walk: Walk, shape: Shape, q: Storage, k: Storage, v: Storage, mask: Storage | None) -> Storage:
    """fp32, or any mask: keeps q, k, v, mask, result and one fp32 number a row; 16-bit backward has an fp32 dq."""
    tape, dtype = walk.tape, q.dtype
    if mask is not None:
        if mask.dtype == "bool":  # made additive per call, and kept per layer
            additive = tape.new(mask.elements, dtype)
            inverted = tape.new(mask.elements, "bool")
            del inverted
            mask = additive
            del additive
        if shape.keys % 8:
            padded = mask.elements // shape.keys * (shape.keys + 8 - shape.keys % 8)
            mask = tape.op("pad_bias", (mask,), padded, mask.dtype, [], (PASS,))
    rows = shape.batch * shape.heads
    scratch = [(rows * ceil_to(shape.queries, 32), "float32")]
    if SIZES[dtype] == 2:
        scratch.append((rows * ceil_to(shape.queries, 64) * shape.dim, "float32"))
    formula: tuple[Entry, ...] = ((q.elements, dtype), (k.elements, dtype), (v.elements, dtype))
    inputs: tuple[Storage, ...] = (q, k, v)
    if mask is not None:
        inputs = (q, k, v, mask)
        formula = (*formula, (mask.elements, dtype))
    result = tape.new(shape.output, dtype)
    statistics = tape.new(rows * ceil_to(shape.queries, 32), "float32")
    result.node = tape.node("efficient", inputs, [*inputs, result, statistics], formula, scratch)
    return result


def math(
    walk: Walk,
    shape: Shape,
    q: Storage,
    k: Storage,
    v: Storage,
    causal: int,
    mask: Storage | None = None,
) -> Storage:
    """No fused kernel fits (fp32 with grouped heads): fp32 scores of T * S are written out. Autocast is off inside."""
    tape = walk.tape
    autocast, tape.autocast = tape.autocast, None
    dtype = q.dtype
    q, k, v = tape.cast(q, "float32"), tape.cast(k, "float32"), tape.cast(v, "float32")
    q = scale(tape, q)
    if causal:
        mask = tape.new(shape.queries * shape.keys, q.dtype)
    elif mask is not None and mask.dtype == "bool":
        mask = tape.new(mask.elements, q.dtype)
    k, v = expand_kv(walk, k, shape.times), expand_kv(walk, v, shape.times)
    scaled = scale(tape, k)
    if shape.batch > 1:
        q = copy(tape, q)
    scores = bmm(tape, q, scaled, shape.scores)
    del scaled
    if mask is not None:
        scores = add(tape, scores, mask)
    probabilities = softmax(tape, scores)
    del scores
    result = bmm(tape, probabilities, v, shape.output)
    tape.autocast = autocast
    return tape.cast(result, dtype)


def eager(
    walk: Walk,
    shape: Shape,
    q: Storage,
    k: Storage,
    v: Storage,
    probability: float,
    mask: Storage | None,
    softcap: int,
    softmax_dtype: str,
    contiguous: HeadMajor,
    bias: Storage | None,
    cast_probs: int,
) -> Storage:
    """The score matrix is written out at every step; kept: q, k, v, the fp32 softmax, its 16-bit copy."""
    tape = walk.tape
    one = shape.times == shape.heads
    straight_q, straight_k, straight_v = contiguous
    keys, values = expand_kv(walk, k, shape.times, one), expand_kv(walk, v, shape.times, one)
    if shape.times > 1:
        straight_k = straight_v = int(not one)
    left, right = tape.lower(q), tape.lower(keys)
    if shape.batch > 1 and not straight_q:
        left = copy(tape, left)
    if shape.batch > 1 and not straight_k:
        right = copy(tape, right)
    scores = bmm(tape, left, right, shape.scores)
    del left, right
    scores = scale(tape, scores)  # also where the factor is 1
    if softcap:
        scores = scale(tape, scores)
        scores = unary(tape, scores, "tanh", saves_output=True)
        scores = scale(tape, scores)
    if bias is not None:
        scores = add(tape, scores, bias)
    if mask is not None:
        scores = add(tape, scores, mask)
    wide = softmax_dtype == "float32"
    probabilities = softmax(tape, scores, "float32" if wide else "")
    if cast_probs:
        probabilities = tape.cast(probabilities, q.dtype if wide else v.dtype)
    del scores
    probabilities = dropout(tape, probabilities, probability)
    walk.block_held.append(probabilities)  # returned as attention weights: a local of the block to its end
    lowered = tape.lower(values)
    if shape.batch > 1 and not straight_v:
        lowered = copy(tape, lowered)
    result = bmm(tape, probabilities, lowered, shape.output)
    return copy(tape, result)
