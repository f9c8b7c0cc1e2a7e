"""Rules of thumb for the memory of a fine-tuning run, as guides and calculators give them. Billions in, GB out."""

from __future__ import annotations

from collections.abc import Callable

GB = 10**9


def guide(parameters: float, method: str) -> float:
    """2 GB a billion and 3 for LoRA, 12 and 4 for full fine-tuning; QLoRA's base about a third of LoRA's."""
    match method:
        case "full":
            return 12 * parameters + 4
        case "lora":
            return 2 * parameters + 3
        case _:
            return 0.7 * parameters + 3


def sixteen(parameters: float, method: str) -> float | None:
    """16 bytes a parameter: 2 weight, 2 gradient, 4 master weight, 4 + 4 moments. Says nothing of adapters."""
    return 16 * parameters if method == "full" else None


def divided(rule: Callable[[float, str], float | None]) -> Callable[[float, str, int], float | None]:
    """The rule spread over the devices that share the states."""

    def shared(parameters: float, method: str, devices: int) -> float | None:
        size = rule(parameters, method)
        return None if size is None else size / devices

    return shared


RULES: dict[str, Callable[[float, str, int], float | None]] = {
    "2 GB/B + 3, 12 GB/B + 4": divided(guide),
    "16 B a parameter": divided(sixteen),
}
