"""Optimizers: the state that each keeps beside the weights, and what its step needs for a moment. Bytes a device.

Sources: torch 2.13, torch/optim/*.py (foreach, for-loop and fused paths); transformers 5.24, optimization.py (Adafactor)
and trainer_optimizer.py (which modules stay 32-bit); bitsandbytes 0.50.2, optim/optimizer.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainlint.memory.account import SIZES, rounded
from trainlint.memory.autograd import Parameter

ALIASES = {
    "adamw_hf": "adamw_torch",
    "adamw": "adamw_torch",
    "adam": "adamw_torch",
    "adamw_bnb_8bit": "adamw_8bit",
    "paged_adamw": "paged_adamw_32bit",
}


def state_bytes(name: str, trained: Sequence[Parameter], momentum: float = 0.0) -> int:
    """All states of all trained parameters."""
    total = 0
    for parameter in trained:
        size, elements = SIZES[parameter.dtype], parameter.elements
        if name == "adamw_torch":
            one = 2 * rounded(elements * size)
        elif name == "adamw_torch_fused":
            one = 2 * rounded(elements * size) + 512
        elif name == "sgd":
            one = rounded(elements * size) if momentum else 0
        elif name == "adafactor":
            one = 512 + _factored(parameter.shape)
        elif name in ("adamw_8bit", "paged_adamw_8bit", "paged_adamw_32bit"):
            paged = name.startswith("paged") and elements >= 100_000
            eight = name.endswith("8bit") and elements >= 4096 and parameter.kind not in ("embedding", "positions")
            one = 0 if paged else 2 * rounded(elements if eight else 4 * elements)
            if eight:
                one += 2 * rounded(4 * -(-elements // 256))
        else:
            one = 0
        total += one * parameter.copies
    return total + (2048 if "8bit" in name else 0)


def _factored(shape: tuple[int, ...]) -> int:
    elements = 1
    for size in shape:
        elements *= size
    if len(shape) < 2:
        return rounded(4 * elements)
    return rounded(4 * (elements // shape[-1])) + rounded(4 * (elements // shape[-2]))


def step_bytes(name: str, trained: Sequence[Parameter], foreach: bool | None = None) -> int:
    """What the step allocates above weights, gradients and states."""
    if name == "adamw_torch":
        if foreach is False:  # square root, then its quotient by the bias correction
            return max(2 * rounded(p.elements * SIZES[p.dtype]) for p in trained)
        return sum(rounded(p.elements * SIZES[p.dtype]) * p.copies for p in trained)
    if name == "adafactor":
        best = before = 0
        for parameter in trained:
            full = rounded(4 * parameter.elements)
            low = 2 * full if parameter.dtype != "float32" else 0
            best = max(best, before + low + 2 * full)
            before = full  # `update` of the tensor before is still bound
        return best
    return 0
