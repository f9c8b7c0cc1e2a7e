"""Mixtures of experts as transformers 5 runs them: tokens sorted by expert, then one grouped matmul a projection.

Source: transformers 5.24, integrations/moe.py (grouped_mm_experts_forward) and models/*/modeling_*.py (routers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlint.memory.activations import activation
from trainlint.memory.adapters import packed_linear
from trainlint.memory.graph import Parameter, Storage
from trainlint.memory.primitives import div, gather, matmul, mean_rows, mul, scale, softmax, split, sum_rows

if TYPE_CHECKING:
    from trainlint.memory.walk import Walk


def grouped_matmul(walk: Walk, x: Storage, weight: Storage, width: int, out: int) -> Storage:
    """Rows of each expert times that expert's weight; not on autocast's list, so the input takes the weight's dtype."""
    tape = walk.tape
    x = tape.cast(x, weight.dtype)
    saved = []
    if weight.node is not None:
        saved.append(x)
    if x.node is not None:
        saved.append(weight)
    formula = ((x.elements, x.dtype), (weight.elements, x.dtype))
    return tape.op("grouped_mm", (x, weight), x.elements // width * out, x.dtype, saved, formula)


def product_of(walk: Walk, x: Storage, weight: Parameter, width: int, out: int) -> Storage:
    """Rows times their experts' weights; packed ones are unpacked one by one (in transformers 4 each is a linear)."""
    if weight.kind == "quantized":
        return packed_linear(walk, x, width, out)
    return grouped_matmul(walk, x, weight.tensor, width, out)


def experts(
    walk: Walk,
    x: Storage,
    name: str,
    hidden: int,
    ffn: int,
    count: int,
    top: int,
    act: str,
    renorm: int | str = "",
    scaled: int = 0,
) -> Storage:
    """Router, top-k, and the gated MLPs of the chosen experts.

    `renorm`: the chosen probabilities are divided by their sum ("always": and stay fp32; "raw": neither divided nor
    cast, with a router that reads its input in fp32); `scaled`: they are multiplied by a factor.
    """
    tape = walk.tape
    tokens = x.elements // hidden
    rows = tokens * top
    router = walk.parameter(name + ".gate", "router", (count, hidden))
    packed = walk.quantized and walk.setup.quantization_experts
    kind = "quantized" if packed else "experts"
    up = walk.parameter(name + ".gate_up", kind, (count * 2 * ffn, hidden) if packed else (count, 2 * ffn, hidden))
    down = walk.parameter(name + ".down", kind, (count * hidden, ffn) if packed else (count, hidden, ffn))
    seen = tape.cast(x, "float32") if renorm == "raw" else x
    gate_weight = tape.cast(router.tensor, "float32") if renorm == "raw" else router.tensor
    logits = matmul(tape, seen, gate_weight, None, hidden, count)
    del seen, gate_weight
    probabilities = softmax(tape, logits, "float32")
    chosen = tape.new(rows, "int64")
    everything = ((probabilities.elements, "float32"),)
    scores: Storage = tape.op("topk", (probabilities,), rows, "float32", [], everything, outputs=(chosen,))
    del probabilities
    if scaled:
        scores = scale(tape, scores)
    if renorm and renorm != "raw":
        total = mean_rows(tape, scores, tokens)
        divided = div(tape, scores, total)
        scores = divided
        del divided, total
    if renorm not in ("always", "raw"):
        scores = tape.cast(scores, logits.dtype)
    order = tape.new(rows, "int64")
    _ordered = tape.new(rows, "int64")
    token = tape.new(rows, "int64")
    inputs = gather(tape, x, rows * hidden, token)
    weights = gather(tape, scores, rows, order)
    both = product_of(walk, inputs, up, hidden, 2 * ffn)
    gate, straight = split(tape, both, [rows * ffn, rows * ffn])
    del both
    active = activation(walk, gate, act)
    product = mul(tape, active, straight)
    del active, gate, straight
    out = product_of(walk, product, down, ffn, hidden)
    projected, product = out, out  # names of one function: alive to its end
    out = mul(tape, out, weights)
    inverse = tape.new(rows, "int64")
    out = gather(tape, out, rows * hidden, inverse)
    result = sum_rows(tape, out, tokens * hidden)
    del out
    del projected, product
    return tape.cast(result, x.dtype)
