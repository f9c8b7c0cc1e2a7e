"""Norms, each as the casts and products that its module writes, or as the one kernel that it calls.

Sources: transformers 5.24, models/*/modeling_*.py; torch 2.13, tools/autograd/derivatives.yaml.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlint.memory import fused
from trainlint.memory.graph import Storage
from trainlint.memory.primitives import add, mean_rows, mul, power, rsqrt, shift

if TYPE_CHECKING:
    from trainlint.memory.walk import Walk


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
