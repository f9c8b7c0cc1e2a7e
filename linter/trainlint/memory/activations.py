"""Activation functions, gated products and dropout. Source: transformers 5.24, activations.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlint.memory import adapters, alibi, fused
from trainlint.memory.graph import Storage
from trainlint.memory.primitives import add, dropout, mul, power, scale, shift, unary

if TYPE_CHECKING:
    from trainlint.memory.walk import Walk


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
