"""A model in a setup: its sizes, what dtypes it is held and runs in, and its parameters as they are met."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod

from trainlint.memory.account import SIZES, rounded
from trainlint.memory.architecture import Architecture
from trainlint.memory.graph import Parameter
from trainlint.memory.parallel import divided
from trainlint.memory.program import ModelProgram, program
from trainlint.memory.setup import Setup

NOT_ADAPTED = ("lm_head", "score", "classifier", "router", "gate")
"""Leaves that target sets leave out: the output head, and routers of experts (no nn.Linear)."""
QUERY_VALUE = (
    "q_proj",
    "v_proj",
    "query",
    "value",
    "c_attn",
    "query_key_value",
    "qkv_proj",
    "q",
    "v",
    "q_lin",
    "v_lin",
    "Wqkv",
)

GROUPWISE = ("gptq", "awq", "hqq", "autoround", "compressed-tensors")
"""Quantizations with a scale and a zero point for each group of weights."""


class Model:
    """What a walk knows of the model. `role` is training, evaluation or reference."""

    def __init__(self, architecture: Architecture, config: Mapping[str, object], setup: Setup, role: str) -> None:
        self.architecture = architecture
        self.config = config
        self.setup = setup
        self.role = role
        self.training = role == "training"
        chosen = architecture.headed(setup.head)
        self.program: ModelProgram = program(architecture, chosen)
        evaluating = role == "evaluation"
        self.batch = (setup.eval_batch or setup.micro_batch) if evaluating else setup.micro_batch
        if setup.preference and not evaluating:
            self.batch *= 2
        length = (setup.eval_length or setup.length) if evaluating else setup.length
        length = -(-length // max(1, setup.context))
        self.sizes = architecture.sizes(
            config, chosen, {"seq": length, "batch": self.batch, "tokens": self.batch * length}
        )
        divided(self.sizes, setup)
        given = self.sizes.setdefault("seq", length)
        assert isinstance(given, int)
        self.length = given
        self.tokens = self.batch * self.length
        self.sizes |= {"batch": self.batch, "tokens": self.tokens, "length": length, "layer": 0}
        self.padded = setup.padded or setup.by_rows
        self.tied = bool(self.sizes.get("tied"))
        self.quantized = setup.quantization_bits in (2, 3, 4, 8) and setup.adapted
        self.weights = "float32" if self.quantized and setup.quantization_prepared else setup.weights
        self.compute = setup.autocast_dtype or setup.compute_dtype
        self.adapted = setup.adapted
        self.all_trained = not setup.adapted and role != "reference"
        self.all_layers = setup.trained_layers <= 0 and setup.method != "freeze"
        self.accumulating = self.training and (setup.accumulation > 1 or setup.zero_grad == "to-zero")
        self.dense_gradients = False
        self.parameters: dict[str, Parameter] = {}
        self.reference_parameters: list[Parameter] = []
        self.prefix = ""
        self.layers = 0
        self.copies = 1

    def quantizes(self, name: str) -> bool:
        """Whether a linear's weight is held quantized."""
        return self.quantized and name.rpartition(".")[2] not in ("score", "classifier")

    def trains(self, layer: int) -> bool:
        """Whether a layer of the stack being walked is one of those that train: the last few, or all."""
        last = self.setup.trained_layers
        return last <= 0 or layer >= self.layers - last

    @property
    def trains_here(self) -> bool:
        """Whether what is being walked may train: outside the layers nothing does where only layers are unfrozen."""
        layer = self.prefix.rpartition(".")[2]
        return self.trains(int(layer)) if layer.isdigit() else self.setup.method != "freeze"

    def adapts(self, name: str) -> bool:
        """Whether a linear carries an adapter."""
        if not self.adapted or self.role == "reference" or not targeted(name, self.setup.adapter_targets):
            return False
        return self.all_layers or self.trains_here

    def parameter(self, name: str, kind: str, shape: tuple[int, ...]) -> Parameter:
        """The parameter of that name in the place that is being walked, made at its first use."""
        if self.setup.modules_to_save and kind in ("embedding", "head"):
            saved = self._saved_module(name, kind, shape)
            if saved is not None:
                return saved
        return self._parameter(name, kind, shape)

    def _saved_module(self, name: str, kind: str, shape: tuple[int, ...]) -> Parameter | None:
        """peft's modules_to_save: a trained copy runs, the original stays where it is (utils/other.py)."""
        leaf = name.removesuffix(".weight").rpartition(".")[2]
        if not self.setup.adapted or leaf not in self.setup.modules_to_save:
            return None
        full = f"saved.{leaf}"
        found = self.parameters.get(full)
        if found is None:
            original = self._parameter(name, kind, shape)
            found = Parameter(full, kind, original.elements, original.dtype, shape, True, original.nbytes)
            self._keep(found)
        return found

    def _keep(self, parameter: Parameter) -> None:
        self.parameters[parameter.name] = parameter
        parameter.copies = self.copies
        if self.accumulating and parameter.trained:
            parameter.gradient = parameter.tensor  # already there; counted once for all

    def _parameter(self, name: str, kind: str, shape: tuple[int, ...]) -> Parameter:
        tied = kind == "embedding" or (kind == "head" and self.tied)
        full = "embedding" if tied else f"{self.prefix}.{name}"
        found = self.parameters.get(full)
        if found is not None:
            return found
        elements = prod(shape)
        if kind == "adapter":
            dtype, trained = self.setup.adapter_dtype, self.role != "reference"
        else:
            dtype, trained = self.weights, self.all_trained and kind != "frozen"
        if trained and not self.all_layers:
            trained = self.trains_here
        nbytes = self._quantized_bytes(shape) if kind == "quantized" else rounded(elements * SIZES[dtype])
        dense = self.dense_gradients and group_of(full) != "root" and kind != "quantized"
        found = Parameter(full, kind, elements, dtype, shape, trained or dense, nbytes)
        found.optimized = trained
        self._keep(found)
        return found

    def _quantized_bytes(self, shape: tuple[int, ...]) -> int:
        """Bytes of a quantized weight with its scales (bitsandbytes 0.50.2, functional.py)."""
        elements = prod(shape)
        setup = self.setup
        if setup.quantization_bits == 8:
            return rounded(elements) + rounded(4 * shape[0])
        codes = rounded((elements * setup.quantization_bits + 7) // 8)
        if setup.quantization_type in GROUPWISE:  # fp16 scales and packed zeros for groups of 128
            groups = -(-elements // 128)
            return codes + rounded(2 * groups) + rounded((groups * setup.quantization_bits + 7) // 8)
        blocks = -(-elements // 64)
        if not setup.double_quantization:
            return codes + rounded(4 * blocks) + 512
        return codes + rounded(blocks) + 512 + rounded(4 * -(-blocks // 256)) + rounded(4 * 256) + 512

    def group(self, name: str) -> list[Parameter]:
        """Parameters of one block, or with "root" all that are in none."""
        return [parameter for full, parameter in self.parameters.items() if group_of(full) == name]

    def release(self) -> None:
        """Nothing will be walked any more: let go of the graph's leaves. Counts and names stay."""
        for parameter in [*self.parameters.values(), *self.reference_parameters]:
            parameter.release()


@lru_cache(maxsize=4096)
def targeted(name: str, targets: tuple[str, ...]) -> bool:
    """Whether targets as the run vocabulary says them mean the linear of that name."""
    leaf = name.rpartition(".")[2]
    for target in targets:
        if target in ("all-linear", "attention", "qv") and leaf in NOT_ADAPTED:
            continue
        match target:
            case "all-linear":
                return True
            case "attention":
                if "attn" in name.lower() or "attention" in name.lower():
                    return True
            case "qv":
                if leaf in QUERY_VALUE:
                    return True
            case _:
                if name == target or name.endswith("." + target):
                    return True
    return False


def group_of(full: str) -> str:
    """The block that a parameter belongs to, or "root"."""
    parts = full.split(".")
    return ".".join(parts[:2]) if len(parts) > 1 and parts[1].isdigit() else "root"
