"""Liger's kernels for layers: one autograd node each, no intermediate results.

Source: liger-kernel 0.8.5, src/liger_kernel/ops (rms_norm.py, swiglu.py, geglu.py, rope.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlint.memory.graph import PASS, Storage, View

if TYPE_CHECKING:
    from trainlint.memory.walk import Walk

MULTIPROCESSORS = 132
"""Partial sums of a weight's gradient, one row each: those of an H100."""


def rmsnorm(walk: Walk, x: Storage, weight: Storage, size: int) -> Storage:
    """Keeps the input and one fp32 number a row; writes the input's gradient over the incoming one (not for gemma)."""
    tape = walk.tape
    result = tape.new(x.elements, x.dtype)
    statistics = tape.new(x.elements // size, "float32")
    in_place = not walk.architecture.name.startswith("gemma")
    elements, dtype, weight_dtype = x.elements, x.dtype, weight.dtype
    trained = weight.node is not None

    def call(gradient: Storage | None, saved: list[Storage]) -> list[Storage | None]:
        partial = tape.new(MULTIPROCESSORS * size, "float32") if trained else None
        back = gradient if in_place else tape.new(elements, dtype)
        weight_gradient = None
        if trained:
            total = tape.new(size, "float32")
            weight_gradient = total if weight_dtype == "float32" else tape.new(size, weight_dtype)
            del total
        del partial
        return [back, weight_gradient]

    result.node = tape.node("liger_rmsnorm", (x, weight), [x, weight, statistics], call)
    return result


def gated(walk: Walk, gate: Storage, up: Storage) -> Storage:
    """Keeps gate and up, and writes their gradients over them."""
    tape = walk.tape
    result = tape.new(gate.elements, gate.dtype)

    def call(gradient: Storage | None, saved: list[Storage]) -> list[Storage | None]:
        return [View(part, part.elements, part.dtype) for part in saved]

    result.node = tape.node("liger_gated", (gate, up), [gate, up], call)
    return result


def rope(walk: Walk, x: Storage) -> Storage:
    """Rotates in place, forward and backward; cos and sin live on anyway."""
    return View(x, x.elements, x.dtype, walk.tape.node("liger_rope", (x,), [], (PASS,)))
