"""The output head and the loss over it: where logits of the vocabulary's size are made, and how often.

Sources: transformers 5.24, loss/loss_utils.py (ForCausalLMLoss casts logits to fp32), models/*/modeling_*.py (the
others).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlint.memory.graph import Storage
from trainlint.memory.primitives import copy, matmul, nll, slice_, softmax

if TYPE_CHECKING:
    from trainlint.memory.walk import Walk


def head(walk: Walk, x: Storage, name: str, width: int, out: int, bias: int = 0) -> Storage:
    """The output embedding: never quantized, adapted only by name; the loss phase begins here."""
    memory = walk.tape.memory
    walk.enter_loss()
    if x.node is not None and walk.role == "training":
        inner = x.node.before

        def reached() -> None:
            if memory.phase == "loss_backward":
                memory.enter("backward")
            if inner is not None:
                inner()

        x.node.before = reached
    weight = walk.parameter(name + ".weight", "head", (out, width)).tensor
    offset = walk.parameter(name + ".bias", "bias", (out,)).tensor if bias else None
    return matmul(walk.tape, x, weight, offset, width, out)


def causal_loss(walk: Walk, logits: Storage) -> Storage:
    """Shifted cross entropy in fp32: logits, their fp32 copy, log probabilities.

    From 4.46 to 4.48 transformers shifts the logits, which copies them once more, and since then the labels.
    """
    tape = walk.tape
    walk.returned.insert(0, logits)
    labels = tape.new(walk.tokens + walk.batch, "int64"), tape.new(walk.tokens, "int64")
    full = tape.cast(logits, "float32")
    if walk.setup.loss == "shifted":
        words = full.elements // walk.tokens
        moved = copy(tape, slice_(tape, full, full.elements - walk.batch * words))
        loss = nll(tape, softmax(tape, moved, "float32", log=True))
        del moved
    else:
        loss = nll(tape, softmax(tape, full, "float32", log=True))
    del labels
    return loss


def plain_loss(walk: Walk, logits: Storage) -> Storage:
    """Cross entropy on logits as they are; it names its input's dtype, so autocast does not raise it."""
    tape = walk.tape
    walk.returned.insert(0, logits)
    autocast, tape.autocast = tape.autocast, None
    probabilities = softmax(tape, logits, log=True)
    tape.autocast = autocast
    return nll(tape, tape.cast(probabilities, "float32") if autocast else probabilities)
