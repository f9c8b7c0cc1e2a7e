"""Linear layers and what may sit on them: frozen and quantized weights, low-rank adapters.

Sources: peft 0.21.2, tuners/lora/layer.py, bnb.py and dora.py; bitsandbytes 0.50.2, autograd/_functions.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlint.memory.graph import Storage, Tensor
from trainlint.memory.primitives import add, copy, dropout, matmul, mul, scale, shift

if TYPE_CHECKING:
    from trainlint.memory.walk import Walk


def linear(walk: Walk, x: Storage, name: str, width: int, out: int, bias: int = 0) -> Storage:
    """`x @ W.T + b`, where W may be quantized and may carry an adapter.

    A plain base: the input is copied to the adapter's dtype, the sum cast back; an int8 base is counted so too. A 4-bit
    one: its result is cloned, and inputs are cast only where autocast does not. One function, so that each local dies
    where peft's does.
    """
    setup, tape = walk.setup, walk.tape
    quantized = walk.quantizes(name)
    kind = "quantized" if quantized else "linear"
    weight = walk.parameter(name + ".weight", kind, (out, width)).tensor
    offset = walk.parameter(name + ".bias", "bias", (out,)).tensor if bias else None
    if not quantized:
        result = matmul(tape, x, weight, offset, width, out)
    elif setup.quantization_bits == 8:
        result = int8_linear(walk, x, width, out, offset)
    else:
        result = packed_linear(walk, x, width, out)
    if not walk.adapts(name):
        return result
    rank, dtype = setup.adapter_rank, result.dtype
    down = walk.parameter(name + ".lora_A", "adapter", (rank, width)).tensor
    up = walk.parameter(name + ".lora_B", "adapter", (out, rank)).tensor
    packed = quantized and setup.quantization_bits != 8
    if packed:
        result = copy(tape, result)
    if not packed or tape.autocast is None:
        x = tape.cast(x, down.dtype)
    if setup.adapter_kind == "dora":
        result = dora(walk, x, result, name, weight, offset, width, out)
        return result if packed else tape.cast(result, dtype)
    delta = dropout(tape, x, setup.adapter_dropout if walk.training else 0.0)
    delta = matmul(tape, delta, down, None, width, rank)
    delta = matmul(tape, delta, up, None, rank, out)
    delta = scale(tape, delta)
    if packed and tape.autocast is None:
        delta = tape.cast(delta, dtype)
    result = add(tape, result, delta)
    del delta
    return result if packed else tape.cast(result, dtype)


def dora(
    walk: Walk,
    x: Storage,
    result: Storage,
    name: str,
    weight: Storage,
    bias: Storage | None,
    width: int,
    out: int,
) -> Storage:
    """Weight-decomposed adapters: `result + (m / |W + s BA| - 1) * base + m / |W + s BA| * BA(x) * s`.

    The norm is made of dense matrices: BA from an identity of the input's width (its graph lives until the layer
    returns, though nothing hangs on it), W in the input's dtype, their scaled sum.
    """
    tape, setup = walk.tape, walk.setup
    rank, dense = setup.adapter_rank, width * out
    down = walk.parameter(name + ".lora_A", "adapter", (rank, width)).tensor
    up = walk.parameter(name + ".lora_B", "adapter", (out, rank)).tensor
    magnitude = walk.parameter(name + ".lora_magnitude_vector", "adapter", (out,)).tensor
    identity = tape.new(width * width, down.dtype)
    low = matmul(tape, identity, down, None, width, rank)
    del identity
    high = matmul(tape, low, up, None, rank, out)
    merged = tape.cast(high, x.dtype)
    for value in dict.fromkeys((merged, high, low)):
        tape.discard(value)
    del value, low, high
    whole = _dense(walk, weight, dense, x.dtype)
    scaled = tape.new(dense, x.dtype)
    total = tape.new(dense, x.dtype)
    del scaled
    norm = tape.new(out, x.dtype)
    del total
    share: Storage = tape.op("div", (magnitude,), out, magnitude.dtype, [norm], ((out, magnitude.dtype),))
    del norm
    if setup.adapter_dropout and walk.training:
        x = dropout(tape, x, setup.adapter_dropout)
        delta = matmul(tape, matmul(tape, x, down, None, width, rank), up, None, rank, out)
        base = matmul(tape, x, whole, None, width, out)
    else:
        delta = matmul(tape, matmul(tape, x, down, None, width, rank), up, None, rank, out)
        base = result if bias is None else add(tape, result, bias)
    left = mul(tape, shift(tape, share), base)
    right = mul(tape, share, delta)
    right = scale(tape, right)
    both = add(tape, left, right)
    del left, right, base, delta, whole, merged
    return add(tape, result, both)


def _dense(walk: Walk, weight: Storage, elements: int, dtype: str) -> Storage:
    """A frozen base weight in the input's dtype: itself, a cast copy, or what its codes unpack to."""
    tape = walk.tape
    if not walk.quantized:
        return weight if weight.dtype == dtype else tape.new(elements, dtype)
    unpacked = tape.new(elements, walk.compute)
    return unpacked if dtype == walk.compute else tape.new(elements, dtype)


def packed_linear(walk: Walk, x: Storage, width: int, out: int) -> Storage:
    """4-bit weight: the dense copy lives only inside forward and inside backward, so nothing is saved.

    Before bitsandbytes 0.43.2 the input was, though nothing needs it.
    Double quantization unpacks one fp32 scale for each 64 weights first.
    """
    tape = walk.tape
    compute = walk.compute
    source = x.dtype
    x = tape.cast(x, compute)
    elements = width * out
    double = walk.setup.double_quantization
    inputs = x.elements

    def dense(dtype: str) -> Tensor:
        scales = tape.new(-(-elements // 64), "float32") if double else None
        result = tape.new(elements, dtype)
        del scales
        return result

    def call(gradient: Storage | None, saved: list[Storage]) -> list[Storage | None]:
        dtype = gradient.dtype if gradient is not None else compute
        held = dense(dtype)
        result = tape.new(inputs, dtype)
        del held
        return [result]

    node = tape.node("mm4bit", (x,), [x] if walk.setup.quantization_keeps_inputs else [], call)
    held = dense(compute)
    result = tape.new(inputs // width * out, compute)
    del held
    result.node = node
    return tape.cast(result, source)


def _converted(walk: Walk, x: Storage, dtype: str) -> Storage:
    """A cast inside an autograd function: no node of its own."""
    return x if x.dtype == dtype else walk.tape.new(x.elements, dtype)


def int8_linear(walk: Walk, x: Storage, width: int, out: int, bias: Storage | None) -> Storage:
    """LLM.int8 over a frozen base: quantizes the input for the product, and keeps the input itself for the backward.

    The backward casts the whole int8 weight to the input's dtype.
    """
    tape = walk.tape
    rows = x.elements // width
    source = x.dtype
    half = _converted(walk, x, "float16")
    codes = tape.new(x.elements, "int8")
    scales = tape.new(rows, "float32")
    outliers = tape.new(x.elements, "bool")
    del half, outliers
    sums = tape.new(rows * out, "int32")
    result: Storage = tape.new(rows * out, "float16")
    del sums
    result = _converted(walk, result, source)
    del codes, scales
    elements, weights = x.elements, width * out
    held: list[Storage] = [x]

    def call(gradient: Storage | None, saved: list[Storage]) -> list[Storage | None]:
        dense = tape.new(weights, source)
        back = tape.new(elements, source)
        del dense
        held.clear()
        return [back]

    node = tape.node("mm8bit", (x,), [], call, holds=True)
    if isinstance(result, Tensor):
        result.node = node
    if node is None:
        held.clear()
    if bias is None:
        return result
    return add(tape, result, tape.cast(bias, result.dtype))
