"""Losses that never hold all logits: the output head and the cross entropy in one, by chunks or tiles.

Each takes what the `head` kind takes, and returns the loss. w is the weight's bytes, V the vocabulary, h the hidden
size, N the tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlint.memory.graph import PASS, VIEW, Storage, View
from trainlint.memory.primitives import (
    add,
    copy,
    gather,
    matmul,
    mul,
    nll,
    scale,
    slice_,
    softmax,
    split,
    sum_rows,
    unary,
)

if TYPE_CHECKING:
    from trainlint.memory.walk import Walk


def liger(walk: Walk, x: Storage, name: str, width: int, out: int, bias: int = 0) -> Storage:
    """liger-kernel 0.8.5 FusedLinearCrossEntropy: gradients of input and weight are made in the forward, by chunks.

    Autocast stays on inside: with fp32 weights the transposed weight is cast for each chunk, and the leaf itself once.
    """
    tape = walk.tape
    weight = _begin(walk, name, width, out)
    tokens, dtype = x.elements // width, x.dtype
    chunk = min(_power_of_two(-(-tokens // -(-out // width))), tokens)
    _labels = tape.new(tokens, "int64")
    back = tape.new(x.elements, dtype)
    trained = weight.node is not None
    weight_back = tape.new(weight.elements, weight.dtype) if trained else None
    _small = tape.new(tokens, "float32"), tape.new(tokens, "bool")
    autocast = tape.autocast
    if dtype == weight.dtype and autocast in (None, dtype):
        logits = tape.new(chunk * out, dtype)
        if trained and dtype == "float32":
            product = tape.new(weight.elements, "float32")
            del product
    else:
        lowered = autocast or dtype
        recording, tape.recording = tape.recording, False
        for _ in range(min(2, -(-tokens // chunk))):
            part = tape.new(chunk * width, lowered) if dtype != lowered else None
            transposed = tape.new(weight.elements, lowered) if weight.dtype != lowered else None
            logits = tape.new(chunk * out, lowered)
            del part, transposed
            leaf = tape.lower(weight)
            rows = tape.new(chunk * width, lowered)
            del leaf, rows
            if weight_back is not None:
                if weight.dtype in ("float32", lowered):
                    part = tape.new(chunk * width, lowered) if dtype != lowered else None
                else:
                    part = tape.new(weight.elements, lowered)
                del part
            del logits
        tape.recording = recording

    def call(gradient: Storage | None, saved: list[Storage]) -> list[Storage | None]:
        tape.memory.enter("backward")
        views: list[Storage | None] = [View(part, part.elements, part.dtype) for part in saved]
        return views if len(views) > 1 else [*views, None]

    saved: list[Storage] = [back, weight_back] if weight_back is not None else [back]
    loss = tape.new(1, "float32")
    loss.node = tape.node("liger_cross_entropy", (x, weight), saved, call)
    return loss


TRL_TOKENS = 4096
TRL_VOCABULARY = 32768


def trl_fused(walk: Walk, x: Storage, name: str, width: int, out: int, bias: int = 0) -> Storage:
    """TRL 1.16 kernels/chunked_logprob.py: tiles of 4096 tokens by 32768 words, gradients in fp32."""
    tape = walk.tape
    weight = _begin(walk, name, width, out)
    loss = trl_log_probabilities(walk, x, weight, width, out, entropy=True)
    return tape.op("sum", (loss,), 1, "float32", [], (VIEW,))


def trl_rows(walk: Walk, x: Storage, name: str, width: int, out: int, bias: int = 0) -> Storage:
    """The same down to the rows' log probabilities, which preference objectives take; the reference has no entropy."""
    weight = _begin(walk, name, width, out)
    return trl_log_probabilities(walk, x, weight, width, out, entropy=walk.role == "training")


def trl_log_probabilities(walk: Walk, x: Storage, weight: Storage, width: int, out: int, entropy: bool) -> Storage:
    """Log probability of each next token; hidden states of all positions but the last are selected into a copy."""
    tape = walk.tape
    memory = tape.memory
    shifted = slice_(tape, x, x.elements - walk.batch * width)
    tokens, dtype = shifted.elements // width, x.dtype
    mask = tape.new(tokens, "bool")

    def select_back(gradient: Storage | None, saved: list[Storage]) -> list[Storage | None]:
        spread = tape.new(shape, dtype)
        indices = tape.new(4 * tokens, "int64")
        del indices
        memory.enter("backward")
        return [spread]

    shape = shifted.elements
    index = tape.new(2 * tokens, "int64")
    hidden = tape.new(shape, dtype)
    hidden.node = tape.node("select", (shifted,), [index], select_back)
    del index, shifted
    labels = tape.new(tokens, "int64")
    lowered = tape.autocast or dtype
    statistics = [tape.new(tokens, "float32") for _ in range(7)]
    tile = (min(tokens, TRL_TOKENS) * TRL_VOCABULARY, lowered)
    buffer = tape.new(*tile)
    rows = min(tokens, TRL_TOKENS) * width
    casts = _tile_casts(walk, dtype, weight, lowered, rows, width, out, tokens)
    del casts
    normaliser = tape.new(tokens, "float32")
    result = tape.new(tokens, "float32")
    kept: list[Storage] = [hidden, labels, normaliser]
    if entropy:
        kept.append(tape.new(tokens, "float32"))
    del buffer, statistics
    trained, wanted, weight_dtype = weight.node is not None, hidden.node is not None, weight.dtype
    weight_elements = weight.elements

    def back(gradient: Storage | None, saved: list[Storage]) -> list[Storage | None]:
        memory.enter("loss_backward")
        first = tape.new(shape, "float32") if wanted else None
        second = tape.new(weight_elements, "float32") if trained else None
        buffer = tape.new(*tile)
        casts = _tile_casts(walk, dtype, weight, lowered, rows, width, out, tokens)
        del casts
        one = tape.new(shape, dtype) if first is not None and dtype != "float32" else first
        two = tape.new(weight_elements, weight_dtype) if second is not None and weight_dtype != "float32" else second
        del buffer
        return [one, two]

    result.node = tape.node("chunked_log_probability", (hidden, weight), [*kept, weight], back)
    kept.clear()
    del hidden, labels, normaliser
    return tape.op("scatter", (result,), tokens, "float32", [mask], ((tokens, "float32"),))


def _tile_casts(
    walk: Walk, dtype: str, weight: Storage, lowered: str, rows: int, width: int, out: int, tokens: int
) -> list[Storage]:
    """A tile's hidden states and weight rows in the compute dtype, where they differ; the last ones live on."""
    made: list[Storage] = []
    if dtype != lowered:
        made.append(walk.tape.new(rows, lowered))
        if tokens > TRL_TOKENS:
            made.append(walk.tape.new(rows, lowered))
    if weight.dtype != lowered:
        made.append(walk.tape.new(min(out, TRL_VOCABULARY) * width, lowered))
    return made


TRL_CHUNK = 256


def trl_chunked(walk: Walk, x: Storage, name: str, width: int, out: int, bias: int = 0) -> Storage:
    """TRL 1.6 to 1.14: fp32 logits of 256 tokens at a time, each chunk checkpointed; three chunks are walked."""
    tape = walk.tape
    memory = tape.memory
    weight = _begin(walk, name, width, out)
    shifted = slice_(tape, x, x.elements - walk.batch * width)
    tokens = shifted.elements // width
    if walk.batch > 1:
        shifted = copy(tape, shifted)
    if shifted.node is not None:

        def reached() -> None:
            if memory.phase == "loss_backward":
                memory.enter("backward")

        shifted.node.before = reached
    order = tape.new(tokens, "int64")
    hidden = gather(tape, shifted, shifted.elements, order)
    del shifted
    _labels = tape.new(tokens, "int64")
    chunks = -(-tokens // TRL_CHUNK)
    sizes = [min(TRL_CHUNK, tokens - TRL_CHUNK * index) for index in range(chunks)]
    if chunks > 3:
        sizes = [TRL_CHUNK, TRL_CHUNK, sizes[-1]]
    losses: list[Storage] = []
    for rows in sizes:
        part = slice_(tape, hidden, rows * width)
        losses.append(_chunk(walk, part, weight, width, out, rows))
        del part
    total = losses.pop(0)
    while losses:
        total = add(tape, total, losses.pop(0))
    return total


def _chunk(walk: Walk, part: Storage, weight: Storage, width: int, out: int, rows: int) -> Storage:
    tape = walk.tape

    def run(part: Storage) -> Storage:
        wide = tape.cast(part, "float32")
        whole = tape.cast(weight, "float32")
        if tape.autocast is not None and whole.parameter is not None:
            whole = View(whole, whole.elements, whole.dtype, tape.node("t", (whole,), [], (PASS,)))
        logits = matmul(tape, wide, whole, None, width, out)
        del wide, whole
        if walk.config.get("final_logit_softcapping"):
            logits = scale(tape, logits)
            logits = unary(tape, logits, "tanh", saves_output=True)
            logits = scale(tape, logits)
        log_probabilities = softmax(tape, logits, log=True)
        loss = nll(tape, log_probabilities)
        valid = tape.new(rows, "bool")  # the entropy metric: nothing hangs on it, but it is recomputed
        probabilities = unary(tape, log_probabilities, "exp", saves_output=True)
        product = mul(tape, probabilities, log_probabilities)
        entropy = sum_rows(tape, product, rows)
        masked = tape.op("mul", (entropy,), rows, "float32", [valid], ((rows, "float32"),))
        for value in (masked, entropy, product, probabilities):
            tape.discard(value)
        return loss

    if part.node is None or not tape.recording:
        return run(part)
    return tape.checkpoint(run, part)


def torchtune_chunked(walk: Walk, x: Storage, name: str, width: int, out: int, bias: int = 0) -> Storage:
    """torchtune CEWithChunkedOutputLoss: logits of 8 chunks are all held, each raised to fp32 for its own loss."""
    tape = walk.tape
    weight = _begin(walk, name, width, out)
    parts = split(tape, x, [x.elements // 8] * 8)
    held = [matmul(tape, part, weight, None, width, out) for part in parts]
    del parts
    losses = [nll(tape, softmax(tape, tape.cast(logits, "float32"), "float32", log=True)) for logits in held]
    total = losses.pop(0)
    while losses:
        total = add(tape, total, losses.pop(0))
    held.clear()
    return total


def cut(walk: Walk, x: Storage, name: str, width: int, out: int, bias: int = 0) -> Storage:
    """Cut cross entropy: one fp32 number a token forward; the backward makes both gradients in one kernel."""
    tape = walk.tape
    weight = _begin(walk, name, width, out)
    tokens = x.elements // width
    lowered, small = tape.lower(x), tape.lower(weight)
    saved: list[Storage] = [lowered, small, tape.new(tokens, "float32"), tape.new(tokens, "int64")]
    formula = ((x.elements, lowered.dtype), (weight.elements, small.dtype))
    return tape.op("cut_cross_entropy", (lowered, small), tokens, "float32", saved, formula)


FUSED = {
    "liger": liger,
    "fused": liger,
    "unsloth": liger,
    "trl-fused": trl_fused,
    "trl-chunked": trl_chunked,
    "torchtune-chunked": torchtune_chunked,
    "chunked": torchtune_chunked,
    "cut-ce": cut,
}
"""Losses by the run vocabulary's names; "full" is the model's own."""


def _begin(walk: Walk, name: str, width: int, out: int) -> Storage:
    walk.enter_loss()
    return walk.parameter(name + ".weight", "head", (out, width)).tensor


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()
