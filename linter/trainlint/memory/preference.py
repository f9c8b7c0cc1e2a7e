"""Preference objectives (DPO and kin): log probabilities of pairs of rows, under the policy and under a reference.

Sources: TRL 1.16 and before, trainer/dpo_trainer.py and trainer/utils.py (selective_log_softmax: fp32 logits row by
row with logsumexp, 16-bit ones with log_softmax).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlint.memory.graph import Storage
from trainlint.memory.primitives import cat, slice_, softmax, split

if TYPE_CHECKING:
    from trainlint.memory.walk import Walk


def row_log_probabilities(walk: Walk, logits: Storage) -> Storage:
    """From the logits of all positions to one log probability a token; autocast is over by now."""
    tape = walk.tape
    rows = walk.batch
    shifted = slice_(tape, logits, logits.elements // walk.length * (walk.length - 1))
    tokens = rows * (walk.length - 1)
    each = shifted.elements // rows
    dtype = shifted.dtype
    autocast, tape.autocast = tape.autocast, None
    if dtype == "float32":
        whole = ((shifted.elements, dtype),)
        picked = tape.op("gather", (shifted,), tokens, dtype, [shifted], whole)
        parts = split(tape, shifted, [each] * rows)
        same = (each, dtype)
        sums: list[Storage] = [
            tape.op(
                "logsumexp", (part,), tokens // rows, dtype, [part], (same,), keep_output=True, scratch=(same, same)
            )
            for part in parts
        ]
        del parts
        stacked = cat(tape, sums)
        del sums
        result: Storage = tape.op("sub", (picked, stacked), tokens, dtype, [], ((tokens, dtype), (tokens, dtype)))
    else:
        parts = split(tape, shifted, [each] * rows)
        chosen: list[Storage] = []
        for part in parts:
            probabilities = softmax(tape, part, log=True)
            chosen.append(tape.op("gather", (probabilities,), tokens // rows, dtype, [probabilities], ((each, dtype),)))
            del probabilities
        del parts, part
        result = cat(tape, chosen)
        del chosen
    tape.autocast = autocast
    return result


def half_copy(walk: Walk, logits: Storage) -> None:
    """The mean logit of the chosen rows, for the log: a masked copy of half of them."""
    held = walk.tape.new(logits.elements // 2, logits.dtype)
    del held


def contrast(walk: Walk, policy: Storage) -> Storage:
    """The loss over the rows' sums: small tensors only."""
    return walk.tape.op("preference", (policy,), 1, "float32", [], ((policy.elements, policy.dtype),))
