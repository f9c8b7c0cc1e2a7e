"""The kinds of operation that an architecture file may name, each as the chain of torch operations its module runs.

Regimes (fp32, autocast, 16-bit weights, frozen, adapted, quantized) are nowhere coded here: they follow from dtypes and
from which inputs are trained. Sources: transformers 5.24, models/*/modeling_*.py, activations.py, masking_utils.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from trainlint.memory import adapters, alibi, attention, disentangled, experts, fused, latent, losses
from trainlint.memory.graph import PASS, Node, Storage, View
from trainlint.memory.primitives import (
    add,
    cat,
    copy,
    dropout,
    mean_rows,
    mul,
    power,
    rsqrt,
    scale,
    shift,
    slice_,
    split,
    unary,
)

if TYPE_CHECKING:
    from trainlint.memory.walk import Walk


# ---------------------------------------------------------------- norms


def rmsnorm(walk: Walk, x: Storage, name: str, size: int, style: str = "llama") -> Storage:
    """Root mean square norm over the last `size` elements, in the order of casts and products that `style` writes."""
    tape = walk.tape
    weight = walk.parameter(name + ".weight", "norm", (size,)).tensor
    if walk.setup.kernels == "liger":
        return fused.rmsnorm(walk, x, weight, size)
    rows = x.elements // size
    if style == "t5":
        inverse = rsqrt(tape, shift(tape, mean_rows(tape, power(tape, tape.cast(x, "float32")), rows)))
        normal = mul(tape, x, inverse)
        del inverse
        if weight.dtype != "float32":
            normal = tape.cast(normal, weight.dtype)
        return mul(tape, weight, normal)
    full = tape.cast(x, "float32")
    inverse = rsqrt(tape, shift(tape, mean_rows(tape, power(tape, full), rows)))
    normal = mul(tape, full, inverse)
    del full, inverse
    match style:
        case "gemma":
            normal = mul(tape, normal, shift(tape, tape.cast(weight, "float32")))
            return tape.cast(normal, x.dtype)
        case "olmo2":
            return tape.cast(mul(tape, weight, normal), x.dtype)
        case _:
            return mul(tape, weight, tape.cast(normal, x.dtype))


def layernorm(walk: Walk, x: Storage, name: str, size: int, bias: int = 1, affine: int = 1) -> Storage:
    """Fused: keeps its input, two fp32 numbers a row, weight and bias. On autocast's fp32 list: all are cast up."""
    tape = walk.tape
    weights: list[Storage] = []
    if affine:
        weights.append(walk.parameter(name + ".weight", "norm", (size,)).tensor)
        if bias:
            weights.append(walk.parameter(name + ".bias", "bias", (size,)).tensor)
    if tape.autocast is not None:
        x = tape.cast(x, "float32")
        weights = [tape.cast(weight, "float32") for weight in weights]
    rows = x.elements // size
    statistics = (tape.new(rows, "float32"), tape.new(rows, "float32"))
    formula = ((x.elements, x.dtype), *((size, x.dtype) for _ in weights))
    return tape.op("layer_norm", (x, *weights), x.elements, x.dtype, [x, *weights], formula, outputs=statistics)


def centred_norm(walk: Walk, x: Storage, name: str, size: int) -> Storage:
    """A layer norm written out in fp32 (Cohere): centred twice, no bias."""
    tape = walk.tape
    weight = walk.parameter(name + ".weight", "norm", (size,)).tensor
    rows = x.elements // size
    full = tape.cast(x, "float32")
    mean = mean_rows(tape, full, rows)
    variance = mean_rows(tape, power(tape, add(tape, full, mean)), rows)
    normal = mul(tape, add(tape, full, mean), rsqrt(tape, shift(tape, variance)))
    del full, mean, variance
    normal = mul(tape, tape.cast(weight, "float32"), normal)
    return tape.cast(normal, x.dtype)


# ---------------------------------------------------------------- activations, products, dropout


def activation(walk: Walk, x: Storage, name: str) -> Storage:
    """An activation by its name in transformers' ACT2FN."""
    tape = walk.tape
    match name:
        case "relu" | "tanh" | "sigmoid":
            return unary(tape, x, name, saves_output=True)
        case "gelu_new" if not walk.setup.one_gelu:  # written out in Python: eight tensors
            half = scale(tape, x)
            inner = scale(tape, power(tape, x))
            inner = add(tape, x, inner)
            inner = scale(tape, inner)
            inner = unary(tape, inner, "tanh", saves_output=True)
            inner = shift(tape, inner)
            return mul(tape, half, inner)
        case "quick_gelu":
            return mul(tape, x, unary(tape, scale(tape, x), "sigmoid", saves_output=True))
        case "bloom_gelu":
            return alibi.bloom_gelu(walk, x)
        case "relu2":
            return power(tape, unary(tape, x, "relu", saves_output=True))
        case _:
            return unary(tape, x, name)


def gated_linear(walk: Walk, x: Storage, gate: str, up: str, width: int, out: int, bias: int, act: str) -> Storage:
    """`activation(gate(x)) * up(x)`: one kernel for both where Liger's are on."""
    first = adapters.linear(walk, x, gate, width, out, bias)
    if walk.setup.kernels == "liger":
        return fused.gated(walk, first, adapters.linear(walk, x, up, width, out, bias))
    active = activation(walk, first, act)
    del first
    second = adapters.linear(walk, x, up, width, out, bias)
    return mul(walk.tape, active, second)


def drop_out(walk: Walk, x: Storage, probability: float) -> Storage:
    """Dropout in training; nothing in evaluation."""
    return dropout(walk.tape, x, probability if walk.training else 0.0)


# ---------------------------------------------------------------- positions


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


# ---------------------------------------------------------------- embeddings


def embedding(walk: Walk, name: str, count: int, width: int, tokens: int = 0, scaled: int = 0) -> Storage:
    """A table lookup. Without `tokens` it is the model's input embedding, which may be tied to the head.

    Its gradient has the table's size. Over a frozen model checkpointing needs a leaf: enable_input_require_grads.
    """
    tape = walk.tape
    is_input = not tokens
    parameter = walk.parameter(name, "embedding" if is_input else "positions", (count, width))
    whole = ((parameter.elements, parameter.dtype),)
    elements = (tokens or walk.tokens) * width
    saved: list[Storage] = []
    x: Storage = tape.op("embedding", (parameter.tensor,), elements, parameter.dtype, saved, whole)
    if scaled:
        x = scale(tape, x)
    if is_input and x.node is None and walk.setup.checkpointing != "none" and tape.recording:
        leaf = Node(-tape.created, "input", None)
        leaf.saved = [x]
        x = View(x, x.elements, x.dtype, leaf)
        tape.created += 1
    return x


def weight(walk: Walk, name: str, elements: int, times: int = 1) -> Storage:
    """A bare parameter, expanded over the batch where `times` is more than one."""
    tensor = walk.parameter(name, "other", (elements,)).tensor
    if times == 1:
        return tensor
    node = walk.tape.node("expand", (tensor,), [], (PASS,))
    return View(tensor, elements * times, tensor.dtype, node)


def frozen(walk: Walk, name: str, elements: int) -> Storage:
    """A parameter that is never trained (fixed positions)."""
    return walk.parameter(name, "frozen", (elements,)).tensor


def image_input(walk: Walk, elements: int) -> Storage:
    """The batch's pixels, cast to the weights' dtype; alive only as long as somebody needs them."""
    walk.input_bytes = 512
    pixels = walk.tape.new(elements * walk.batch, "float32")
    walk.first_input = pixels.nbytes
    walk.batch_held.append(pixels)
    return walk.tape.cast(pixels, walk.weights)


def convolution(walk: Walk, x: Storage, name: str, shape: tuple[int, ...], positions: int, bias: int = 1) -> Storage:
    """A convolution over `positions` output places a sample: saves input and weight, whatever is trained."""
    tape = walk.tape
    kernel = walk.parameter(name + ".weight", "linear", shape)
    inputs = [tape.lower(x), tape.lower(kernel.tensor)]
    dtype = inputs[0].dtype
    formula: tuple[tuple[int, str] | int | None, ...] = ((x.elements, dtype), (kernel.elements, dtype))
    if bias:
        inputs.append(tape.lower(walk.parameter(name + ".bias", "bias", (shape[0],)).tensor))
        formula = (*formula, PASS)
    saved = inputs[:2] if inputs[1].node is not None or inputs[0].node is not None else []
    return tape.op("conv", inputs, walk.batch * positions * shape[0], dtype, saved, formula)


# ---------------------------------------------------------------- masks


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


# ---------------------------------------------------------------- small ones


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
    "activation": activation,
    "add": lambda walk, left, right: add(walk.tape, left, right),
    "alibi": alibi.alibi,
    "attention": attention.attention,
    "bidirectional_mask": bidirectional_mask,
    "bloom_attention": alibi.bloom_attention,
    "bloom_gelu": alibi.bloom_gelu,
    "boolean_mask": alibi.boolean_mask,
    "buffer": lambda walk, elements: walk.tape.new(elements, walk.weights),
    "cast": lambda walk, x, dtype: walk.tape.cast(x, dtype),
    "cast_like": lambda walk, x, like: walk.tape.cast(x, like.dtype),
    "cat": lambda walk, *parts: cat(walk.tape, parts),
    "causal_loss": losses.causal_loss,
    "causal_mask": causal_mask,
    "centred_norm": centred_norm,
    "class_loss": losses.plain_loss,
    "complex_rope": latent.complex_rope,
    "complex_rotary": latent.complex_rotary,
    "convolution": convolution,
    "copy": lambda walk, x: copy(walk.tape, x),
    "disentangled_attention": disentangled.disentangled_attention,
    "dropout": drop_out,
    "embedding": embedding,
    "experts": experts.experts,
    "first_token": first_token,
    "frozen": frozen,
    "gated_linear": gated_linear,
    "head": losses.head,
    "image_input": image_input,
    "latent_keys": latent.latent_keys,
    "layernorm": layernorm,
    "linear": adapters.linear,
    "mpt_attention": alibi.mpt_attention,
    "mul": lambda walk, left, right: mul(walk.tape, left, right),
    "ones_mask": disentangled.ones_mask,
    "plain_loss": losses.plain_loss,
    "relative_bias": relative_bias,
    "repeat": lambda walk, x, times: attention.expand_kv(walk, x, times),
    "relative_positions": disentangled.relative_positions,
    "relative_table": disentangled.relative_table,
    "rmsnorm": rmsnorm,
    "rope": rope,
    "rope_cat": rope_cat,
    "rotary": rotary,
    "scale": lambda walk, x, wanted=1: scale(walk.tape, x) if wanted else x,
    "slice": token_slice,
    "split": token_split,
    "token_mask": disentangled.token_mask,
    "to_weights": lambda walk, x: walk.tape.cast(x, walk.weights),
    "weight": weight,
    "zeros": zeros,
}
"""Every name that an architecture file may call."""
