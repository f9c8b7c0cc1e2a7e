"""What a batch becomes before the first block: embeddings, bare parameters, patches of an image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlint.memory.graph import PASS, Node, Storage, View
from trainlint.memory.primitives import scale

if TYPE_CHECKING:
    from trainlint.memory.walk import Walk


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
