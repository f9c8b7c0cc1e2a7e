"""Optimizers: the state that each keeps beside the weights, and what its step needs for a moment. Bytes a device.

w is the bytes of a weight, n the elements of one parameter. Sources: torch 2.13, torch/optim/*.py (foreach, for-loop
and fused paths); transformers 5.24, optimization.py (Adafactor) and trainer_optimizer.py (embeddings stay 32-bit with
bitsandbytes); bitsandbytes 0.50.2, optim/optimizer.py (blocks of 256, tensors under 4096 elements stay 32-bit, paged
states of 100,000 elements and more live in host memory); torchao 0.18, optim/subclass_4bit.py and subclass_8bit.py;
schedulefree 1.4.1; lion-pytorch 0.2.5; galore-torch 1.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from trainlint.memory.account import SIZES, rounded
from trainlint.memory.graph import Parameter

ALIASES = {
    "adam": "adamw_torch",
    "adamw": "adamw_torch",
    "adamw_hf": "adamw_torch",
    "adam_torch": "adamw_torch",
    "adamw_apex_fused": "adamw_torch_fused",
    "fused_adam": "adamw_torch_fused",
    "adamw_fused": "adamw_torch_fused",
    "adamw_bnb_8bit": "adamw_8bit",
    "adamw_bnb_32bit": "adamw_32bit",
    "paged_adamw": "paged_adamw_32bit",
    "lion": "lion_32bit",
    "paged_lion": "paged_lion_32bit",
    "ademamix": "ademamix_32bit",
    "paged_ademamix": "paged_ademamix_32bit",
    "rmsprop_bnb": "rmsprop_32bit",
    "rmsprop_bnb_8bit": "rmsprop_8bit",
    "rmsprop_bnb_32bit": "rmsprop_32bit",
    "galore_adamw_layerwise": "galore_adamw",
    "schedule_free": "schedule_free_adamw",
    "pagedadamw8bit": "paged_adamw_8bit",
    "adamw8bit": "adamw_8bit",
    "ao_adamw_4bit": "adamw_torch_4bit",
    "ao_adamw_8bit": "adamw_torch_8bit",
}
"""Names that mean the same states."""

PLAIN: dict[str, tuple[int, int]] = {
    "adamw_torch": (2, 1),
    "adamw_torch_fused": (2, 0),
    "sgd": (0, 0),
    "rmsprop": (1, 1),
    "adagrad": (1, 2),
    "nadam": (2, 1),
    "adamax": (2, 1),
    "radam": (2, 1),
    "schedule_free_adamw": (2, 1),
    "schedule_free_radam": (2, 1),
    "schedule_free_sgd": (1, 0),
    "stable_adamw": (2, 1),
    "grokadamw": (3, 1),
}
"""States in the weights' dtype, and temporaries of that size that the foreach step makes for all parameters at once."""

BLOCKWISE: dict[str, tuple[int, int]] = {
    "adamw": (2, 256),
    "lion": (1, 256),
    "ademamix": (3, 256),
    "rmsprop": (1, 256),
    "adagrad": (1, 256),
}
"""bitsandbytes: 8- or 32-bit states of each parameter, and elements that share one fp32 scale."""

TORCHAO: dict[str, tuple[int, int]] = {"adamw_torch_4bit": (4, 128), "adamw_torch_8bit": (8, 256)}
"""torchao: bits and block of its two states; parameters that do not divide into blocks keep the weights' dtype."""

GALORE_RANK = 128
"""transformers' default for `rank` in optim_args."""

LARGEST_TWICE = ("lion_pytorch",)
"""Python loops over parameters with two temporaries of the one at hand."""


def known(name: str) -> bool:
    """Whether the states of an optimizer of that name are known."""
    name = ALIASES.get(name, name)
    return name in PLAIN or name in TORCHAO or _blockwise(name) is not None or name in FACTORED or name in LARGEST_TWICE


def state_bytes(name: str, trained: Sequence[Parameter], momentum: float = 0.0) -> int:
    """All states of all trained parameters; those of an unknown optimizer are taken for AdamW's."""
    name = ALIASES.get(name, name)
    one = _state_of(name, momentum)
    maps = 2048 if "8bit" in name and name not in TORCHAO else 0
    return sum([one(parameter) * parameter.copies for parameter in trained]) + maps


def state_dtype(name: str, dtype: str) -> str:
    """What most of an optimizer's states are held in, for weights of a dtype."""
    name = ALIASES.get(name, name)
    if name in TORCHAO:
        return f"int{TORCHAO[name][0]}"
    if _blockwise(name) is not None:
        return "uint8" if name.endswith("8bit") else "float32"
    return "float32" if name in ("adafactor", "adalomo") else dtype


def _state_of(name: str, momentum: float) -> Callable[[Parameter], int]:
    if name in FACTORED:
        return FACTORED[name]
    blockwise = _blockwise(name)
    if blockwise is not None:
        return _blockwise_state(name, *blockwise)
    if name in TORCHAO:
        return _torchao_state(*TORCHAO[name])
    copies = 1 if name in LARGEST_TWICE else PLAIN.get(name, (2, 1))[0]
    if name in ("sgd", "rmsprop") and momentum:
        copies += 1
    scalar = 512 if name == "adamw_torch_fused" else 0
    return lambda p: copies * rounded(p.elements * SIZES[p.dtype]) + scalar


def _blockwise(name: str) -> tuple[int, int] | None:
    family, _, width = name.removeprefix("paged_").rpartition("_")
    return BLOCKWISE.get(family) if width in ("8bit", "32bit") else None


def _blockwise_state(name: str, states: int, block: int) -> Callable[[Parameter], int]:
    paged_name, eight_name = name.startswith("paged"), name.endswith("8bit")

    def one(p: Parameter) -> int:
        paged = paged_name and p.elements >= 100_000
        eight = eight_name and p.elements >= 4096 and p.kind not in ("embedding", "positions")
        size = 0 if paged else states * rounded(p.elements if eight else 4 * p.elements)
        return size + (states * rounded(4 * -(-p.elements // block)) if eight else 0)

    return one


def _torchao_state(bits: int, block: int) -> Callable[[Parameter], int]:
    def one(p: Parameter) -> int:
        if p.elements < 4096 or p.elements % block:
            return 2 * rounded(p.elements * SIZES[p.dtype])
        return 2 * (rounded(p.elements * bits // 8) + rounded(4 * (p.elements // block)))

    return one


def _adafactor(p: Parameter) -> int:
    """Row and column means in fp32, and the RMS scalar."""
    if len(p.shape) < 2:
        return 512 + rounded(4 * p.elements)
    return 512 + rounded(4 * (p.elements // p.shape[-1])) + rounded(4 * (p.elements // p.shape[-2]))


def _adalomo(p: Parameter) -> int:
    return _adafactor(p) - 512


def _muon(p: Parameter) -> int:
    """One momentum for matrices, AdamW (fused) for everything else."""
    size = rounded(p.elements * SIZES[p.dtype])
    return size if muon_matrix(p) else 2 * size + 512


def muon_matrix(p: Parameter) -> bool:
    """What Muon orthogonalises: two-dimensional weights that are neither embedding nor head."""
    return len(p.shape) == 2 and p.kind not in ("embedding", "positions", "head")


def _low_rank(p: Parameter) -> bool:
    """GaLore's usual targets: linear layers of attention and MLP."""
    return p.kind == "linear" and ("attn" in p.name or "mlp" in p.name)


def _galore_sizes(p: Parameter) -> tuple[int, int]:
    """Elements of the projected gradient, and of the projection that is kept.

    In 16 bit the projection is a copy of `rank` rows; in fp32 it is a view into the square matrix that svd returned.
    """
    rows, columns = p.shape
    rank = min(GALORE_RANK, rows, columns)
    small, large = min(rows, columns), max(rows, columns)
    return large * rank, small * (rank if p.dtype != "float32" else small)


def _galore(p: Parameter) -> int:
    size = SIZES[p.dtype]
    if not _low_rank(p):
        return 2 * rounded(p.elements * size)
    low, projection = _galore_sizes(p)
    return 2 * rounded(low * size) + rounded(projection * size)


FACTORED: dict[str, Callable[[Parameter], int]] = {
    "adafactor": _adafactor,
    "adalomo": _adalomo,
    "lomo": lambda p: 0,
    "muon": _muon,
    "galore_adamw": _galore,
}
"""States that depend on a parameter's shape."""


def step_bytes(name: str, trained: Sequence[Parameter], foreach: bool | None = None) -> int:
    """What the step allocates above weights, gradients and states."""
    name = ALIASES.get(name, name)
    if not trained:
        return 0
    match name:
        case "adamw_torch" if foreach is False:  # square root, then its quotient by the bias correction
            return max(2 * rounded(p.elements * SIZES[p.dtype]) for p in trained)
        case "adafactor":
            return max(_adafactor_step(trained))
        case "muon":
            return max((_muon_step(p) for p in trained if muon_matrix(p)), default=0)
        case "galore_adamw":
            return max(_galore_step(trained))
        case "lion_pytorch":
            return max(2 * rounded(p.elements * SIZES[p.dtype]) for p in trained)
        case _ if name in PLAIN or not known(name):
            copies = PLAIN.get(name, (2, 1))[1]
            return copies * sum([rounded(p.elements * SIZES[p.dtype]) * p.copies for p in trained]) if copies else 0
        case _:
            return 0


def _adafactor_step(trained: Sequence[Parameter]) -> Iterator[int]:
    """Two fp32 copies (four where the weight is 16 bit), beside the `update` of the tensor before, still bound."""
    before = 0
    for p in trained:
        full = rounded(4 * p.elements)
        yield before + 2 * full + (2 * full if p.dtype != "float32" else 0)
        before = full


def _muon_step(p: Parameter) -> int:
    """Newton-Schulz on one matrix: the update, its bf16 copy, the next iterate, and two Gram matrices in bf16."""
    update = rounded(p.elements * SIZES[p.dtype])
    low = rounded(2 * p.elements)
    gram = rounded(2 * min(p.shape) ** 2)
    return update + (low if p.dtype == "float32" else 0) + low + 2 * gram


def _galore_step(trained: Sequence[Parameter]) -> Iterator[int]:
    """A Python loop: the denominator and the normalised gradient of the tensor before are still bound."""
    denominator = normalised = 0
    ordered = [p for p in trained if not _low_rank(p)] + [p for p in trained if _low_rank(p)]
    for p in ordered:
        size = SIZES[p.dtype]
        full = rounded(p.elements * size)
        low = rounded(_galore_sizes(p)[0] * size) if _low_rank(p) else full
        gradient = low if _low_rank(p) else 0
        yield gradient + denominator + normalised + low
        denominator = low
        yield gradient + denominator + normalised + low
        normalised = low
        if _low_rank(p):
            yield gradient + denominator + normalised + 2 * full
            normalised = full
