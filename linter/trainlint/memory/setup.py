"""What a run does, as far as memory is concerned: every knob as a plain number, word or flag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

DTYPES = ("float32", "bfloat16", "float16")
"""What weights, activations and gradients can be held in here."""

DTYPE_WORDS = {
    "fp32": "float32", "float": "float32", "tf32": "float32", "32": "float32", "bf16": "bfloat16", "fp16": "float16",
    "half": "float16", "16": "float16",
}  # fmt: skip
"""Other words for them."""

UNTUNED = ("full", "pretrain", "pretraining", "freeze")
"""Methods that train the model's own weights."""


@dataclass(frozen=True)
class Setup:
    """One training run, without its model. Words are those of the run vocabulary; absent means None, "" or 0."""

    method: str = "full"
    head: str = ""
    # precision
    weights: str = "float32"
    compute: str = ""
    autocast: bool = False
    grad_scaler: bool = False
    gradients: str = ""
    master: str = ""
    moments: str = ""
    # adapter
    adapter_rank: int = 8
    adapter_targets: tuple[str, ...] = ("all-linear",)
    adapter_dropout: float = 0.0
    adapter_dtype: str = "float32"
    adapter_kind: str = "lora"
    trained_layers: int = 0
    modules_to_save: tuple[str, ...] = ()
    # quantization of the frozen base
    quantization_bits: int = 0
    quantization_type: str = ""
    double_quantization: bool = False
    quantization_storage: str = "uint8"
    quantization_prepared: bool = False
    quantization_experts: bool = False
    quantization_keeps_inputs: bool = False
    # batch and length
    micro_batch: int = 1
    accumulation: int = 1
    length: int = 512
    packing: bool = False
    padded: bool = False
    # evaluation
    eval_batch: int = 0
    eval_steps: int = 0
    eval_length: int = 0
    eval_gather: bool = True
    eval_only: bool = False
    # saving memory and time
    checkpointing: str = "none"
    reentrant: bool = False
    checkpoint_every: int = 1
    activation_offload: bool = False
    kernels: str = "none"
    attention: str = "sdpa"
    one_gelu: bool = False
    flash_available: bool = True
    loss: str = "full"
    keep_outputs: bool = False
    compiled: bool = False
    # objective
    objective: str = "sft"
    reference: str = ""
    # optimizer
    optimizer: str = "adamw_torch_fused"
    momentum: float = 0.0
    foreach: bool | None = None
    in_backward: bool = False
    zero_grad: str = "to-none"
    clip: float | None = 1.0
    # sharding
    sharding: str = "none"
    reshard_after_forward: bool = True
    strategy: str = "FULL_SHARD"
    use_orig_params: bool = True
    wrap: str = ""
    reduce_dtype: str = ""
    offload_optimizer: bool = False
    offload_parameters: bool = False
    reduce_bucket: int = 500_000_000
    prefetch_bucket: int = 50_000_000
    overlap_comm: bool | None = None
    bucket_mb: float = 25
    bucket_view: bool = False
    # parallel degrees
    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1

    @property
    def compute_dtype(self) -> str:
        """What matmuls run in."""
        return self.compute or self.weights

    @property
    def autocast_dtype(self) -> str | None:
        """The dtype that torch.autocast casts to, or None where it is off."""
        return self.compute_dtype if self.autocast and self.compute_dtype != "float32" else None

    @property
    def adapted(self) -> bool:
        """Adapters are trained over a frozen base."""
        return self.method not in UNTUNED

    @property
    def preference(self) -> bool:
        """Every sample is a pair of rows, chosen and rejected."""
        return self.objective in ("dpo", "ipo", "orpo", "simpo", "cpo", "reward")

    @property
    def by_rows(self) -> bool:
        """The loss is made of each row's log probability, not of the model's own cross entropy."""
        return self.objective in ("dpo", "ipo", "orpo", "simpo", "cpo", "kto", "grpo", "rloo")

    @property
    def reference_kind(self) -> str:
        """What the objective's reference model is; by default a copy, or the base under a switched-off adapter."""
        if not self.by_rows:
            return "none"
        if self.reference:
            return self.reference
        if self.objective in ("orpo", "simpo", "cpo", "grpo", "rloo"):
            return "none"
        return "adapter-off" if self.adapted else "copy"

    @classmethod
    def from_words(cls, words: Mapping[str, object]) -> Setup:
        """A setup from a plain nested mapping in the run vocabulary (`batch.micro`, `sharding.kind`, ...)."""
        return cls(**_knobs(words))  # type: ignore[arg-type]


RENAMED = {
    "precision.weights": "weights", "precision.compute": "compute", "precision.autocast": "autocast",
    "precision.grad_scaler": "grad_scaler", "precision.gradients": "gradients", "precision.master": "master",
    "precision.moments": "moments", "adapter.rank": "adapter_rank", "adapter.targets": "adapter_targets",
    "adapter.dropout": "adapter_dropout", "adapter.dtype": "adapter_dtype", "adapter.kind": "adapter_kind",
    "adapter.layers": "trained_layers",
    "adapter.modules_to_save": "modules_to_save", "quantization.bits": "quantization_bits",
    "quantization.type": "quantization_type", "quantization.double": "double_quantization",
    "quantization.storage": "quantization_storage", "quantization.prepared": "quantization_prepared",
    "quantization.experts": "quantization_experts",
    "batch.micro": "micro_batch", "batch.accumulation": "accumulation", "batch.eval": "eval_batch",
    "length.max": "length", "length.eval": "eval_length", "length.packing": "packing", "length.padded": "padded",
    "evaluation.batch": "eval_batch", "evaluation.steps": "eval_steps", "evaluation.gather_logits": "eval_gather",
    "evaluation.only": "eval_only", "checkpointing.kind": "checkpointing", "checkpointing.reentrant": "reentrant",
    "checkpointing.every": "checkpoint_every", "optimizer.name": "optimizer", "optimizer.momentum": "momentum",
    "optimizer.foreach": "foreach", "optimizer.in_backward": "in_backward", "sharding.kind": "sharding",
    "model.head": "head", "parallel.data": "data", "parallel.tensor": "tensor", "parallel.pipeline": "pipeline",
    "parallel.context": "context", "parallel.expert": "expert",
}  # fmt: skip
"""Where a path of the run vocabulary goes; `sharding.X` and top-level words keep their names."""


KNOWN = frozenset(field.name for field in fields(Setup))
"""All knobs."""


def _knobs(words: Mapping[str, object]) -> dict[str, object]:
    out: dict[str, object] = {}
    for path, value in _paths(words):
        name = RENAMED.get(path, path.removeprefix("sharding."))
        if value is None and name not in ("clip", "foreach", "overlap_comm"):
            continue
        if name == "checkpointing" and isinstance(value, bool):
            value = "full" if value else "none"
        elif name in ("adapter_targets", "modules_to_save"):
            value = (value,) if isinstance(value, str) else tuple(str(part) for part in _listed(value))
        elif name in ("reduce_bucket", "prefetch_bucket") and isinstance(value, float):
            value = int(value)  # `5e8` elements
        elif name in ("offload_optimizer", "offload_parameters"):
            value = bool(value) and value != "none"
        elif name in ("weights", "compute", "gradients", "master", "moments", "adapter_dtype", "reduce_dtype"):
            value = DTYPE_WORDS.get(str(value), str(value).removeprefix("torch."))
        if name in KNOWN:
            out[name] = value
    return out


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]


def _paths(words: Mapping[str, object], prefix: str = "") -> list[tuple[str, object]]:
    out: list[tuple[str, object]] = []
    for key, value in words.items():
        if isinstance(value, Mapping):
            out += _paths(value, f"{prefix}{key}.")
        else:
            out.append((prefix + key, value))
    return out
