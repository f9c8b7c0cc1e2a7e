"""One torch operation each: what its derivative formula saves, and what its backward allocates.

Sources: torch 2.13, tools/autograd/derivatives.yaml and torch/csrc/autograd/FunctionsManual.cpp;
aten/src/ATen/autocast_mode.h for the lists of operations that autocast raises to fp32.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainlint.memory.autograd import Tape
from trainlint.memory.graph import PASS, VIEW, Entry, Storage, View


def promoted(first: str, second: str) -> str:
    """The dtype of an elementwise result of two float tensors."""
    return second if second == "float32" else first


def add(tape: Tape, left: Storage, right: Storage) -> Storage:
    """`left + right`, either may be broadcast; the gradient itself goes to both."""
    elements = max(left.elements, right.elements)
    return tape.op("add", (left, right), elements, promoted(left.dtype, right.dtype), [], (PASS, PASS))


def mul(tape: Tape, left: Storage, right: Storage) -> Storage:
    """`left * right`: each side's gradient needs the other side."""
    elements = max(left.elements, right.elements)
    dtype = promoted(left.dtype, right.dtype)
    saved = []
    if left.node is not None:
        saved.append(right)
    if right.node is not None:
        saved.append(left)
    each = (elements, dtype)
    return tape.op("mul", (left, right), elements, dtype, saved, (each, each))


def div(tape: Tape, left: Storage, right: Storage) -> Storage:
    """`left / right`: saves both."""
    each = (left.elements, left.dtype)
    return tape.op("div", (left, right), left.elements, left.dtype, [left, right], (each, each))


def scale(tape: Tape, value: Storage) -> Storage:
    """`value * number`: saves nothing, one more tensor each way."""
    same = (value.elements, value.dtype)
    return tape.op("scale", (value,), value.elements, value.dtype, [], (same,))


def shift(tape: Tape, value: Storage) -> Storage:
    """`value + number`."""
    return tape.op("shift", (value,), value.elements, value.dtype, [], (PASS,))


def power(tape: Tape, value: Storage) -> Storage:
    """`value ** number`, on autocast's fp32 list; grad * (k * value ** (k - 1)) makes three temporaries."""
    if tape.autocast is not None:
        value = tape.cast(value, "float32")
    same = (value.elements, value.dtype)
    return tape.op("pow", (value,), value.elements, value.dtype, [value], (same,), scratch=(same, same))


def mean_rows(tape: Tape, value: Storage, rows: int) -> Storage:
    """The mean of each row."""
    return tape.op("mean", (value,), rows, value.dtype, [], ((value.elements, value.dtype),))


def rsqrt(tape: Tape, value: Storage) -> Storage:
    """`1 / sqrt(value)`: saves its result."""
    same = (value.elements, value.dtype)
    return tape.op("rsqrt", (value,), value.elements, value.dtype, [], (same,), keep_output=True)


def unary(tape: Tape, value: Storage, name: str, saves_output: bool = False) -> Storage:
    """An activation that one kernel computes: saves its input, or its result."""
    same = (value.elements, value.dtype)
    saved = [] if saves_output else [value]
    return tape.op(name, (value,), value.elements, value.dtype, saved, (same,), keep_output=saves_output)


def slice_(tape: Tape, value: Storage, elements: int) -> Storage:
    """A view of part of a tensor; its backward is a zero-filled tensor of the whole."""
    node = tape.node("slice", (value,), [], ((value.elements, value.dtype),))
    return View(value, elements, value.dtype, node)


def split(tape: Tape, value: Storage, parts: Sequence[int]) -> list[Storage]:
    """Views; the backward concatenates the parts' gradients."""
    node = tape.node("split", (value,), [], ((value.elements, value.dtype),))
    return [View(value, elements, value.dtype, node, slot) for slot, elements in enumerate(parts)]


def copy(tape: Tape, value: Storage) -> Storage:
    """`contiguous()`, `clone()`, a reshape that cannot be a view."""
    return tape.op("copy", (value,), value.elements, value.dtype, [], (PASS,))


def cat(tape: Tape, parts: Sequence[Storage]) -> Storage:
    """A concatenation; its backward hands out views."""
    elements = sum(part.elements for part in parts)
    return tape.op("cat", parts, elements, parts[0].dtype, [], (VIEW,) * len(parts))


def bmm(tape: Tape, left: Storage, right: Storage, elements: int) -> Storage:
    """A batched matmul: each side's gradient needs the other side."""
    left, right = tape.lower(left), tape.lower(right)
    saved = []
    if left.node is not None:
        saved.append(right)
    if right.node is not None:
        saved.append(left)
    formula = ((left.elements, left.dtype), (right.elements, left.dtype))
    return tape.op("bmm", (left, right), elements, left.dtype, saved, formula)


def matmul(tape: Tape, value: Storage, weight: Storage, bias: Storage | None, width: int, out: int) -> Storage:
    """`value @ weight + bias`: keeps the input where the weight is trained, and the weight (its cast copy!) where the
    input needs a gradient.
    """
    value = tape.lower(value)
    weight = tape.lower(weight)
    dtype = value.dtype
    formula: tuple[Entry, ...] = ((value.elements, dtype), (weight.elements, dtype))
    inputs: tuple[Storage, ...] = (value, weight)
    if bias is not None:
        inputs = (value, weight, tape.lower(bias))
        formula = (*formula, PASS)
    saved = []
    if weight.node is not None:
        saved.append(value)
    if value.node is not None:
        saved.append(weight)
    return tape.op("mm", inputs, value.elements // width * out, dtype, saved, formula)


def softmax(tape: Tape, value: Storage, dtype: str = "", log: bool = False) -> Storage:
    """Saves its result. `dtype` (or autocast) asks for an fp32 result.

    bf16 scores are cast up first; fp16 ones the kernel reads directly (softmax's half_to_float). The plain backward
    first builds grad * output, one more tensor of that size (SoftMax.cu, softmax_backward_cuda_out).
    """
    if tape.autocast is not None:
        dtype = "float32"
    if dtype and value.dtype != "float16":
        value = tape.cast(value, dtype)
    source = value.dtype
    result = dtype or source
    elements = value.elements
    scratch = None if log else ((elements, result),)
    name = "log_softmax" if log else "softmax"
    return tape.op(name, (value,), elements, result, [], ((elements, source),), keep_output=True, scratch=scratch)


def dropout(tape: Tape, value: Storage, probability: float) -> Storage:
    """Keeps a mask of one byte per element, not the values; at probability 0 the module hands its input on."""
    if not probability:
        return value
    mask = tape.new(value.elements, "bool")
    same = (value.elements, value.dtype)
    return tape.op("dropout", (value,), value.elements, value.dtype, [], (same,), outputs=(mask,))


def gather(tape: Tape, value: Storage, elements: int, index: Storage) -> Storage:
    """`value[index]`: keeps the index; the backward is a zero-filled tensor of the source's size."""
    return tape.op("index", (value,), elements, value.dtype, [index], ((value.elements, value.dtype),))


def nll(tape: Tape, log_probabilities: Storage) -> Storage:
    """The negative log likelihood, one number: keeps the log probabilities."""
    same = (log_probabilities.elements, log_probabilities.dtype)
    return tape.op("nll", (log_probabilities,), 1, log_probabilities.dtype, [log_probabilities], (same,))


def sum_rows(tape: Tape, value: Storage, elements: int) -> Storage:
    """A sum over a dimension; its backward expands, which is a view."""
    return tape.op("sum", (value,), elements, value.dtype, [], (VIEW,))
