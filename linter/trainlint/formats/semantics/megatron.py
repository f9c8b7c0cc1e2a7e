"""What trainers on Megatron Core make of a run: 16-bit weights with float32 main copies, split by degrees.

Source: Megatron-LM core_r0.7-core_r0.13, core/distributed/distributed_data_parallel.py, core/optimizer/*.py;
NeMo 1.23-2.0 nlp/models/language_modeling/megatron_base_model.py.
"""

from __future__ import annotations

from trainlint.formats.format import Draft
from trainlint.formats.semantics import degrees

GRANULARITY = {"full": "full", "selective": "selective"}
"""`recompute_granularity` → which activations are recomputed."""


def states(draft: Draft, half: str, distributed: bool | None, note: str) -> None:
    """Weights in `half`, gradients, main weights and moments in float32, the last two sharded by the distributed
    optimizer (`distributed`; None where that is not known)."""
    draft.derive("precision.weights", half, note)
    draft.derive("precision.compute", half, note)
    draft.derive("precision.autocast", False, note)
    draft.derive("precision.grad_scaler", half == "float16", note)
    if half != "float32":
        draft.derive("precision.gradients", "float32", "Megatron accumulates gradients in float32")
        draft.derive("precision.master", "float32", "Megatron's main parameters")
        draft.derive("precision.moments", "float32", "Megatron's optimizer")
    if distributed is None:
        draft.either(
            "sharding.kind",
            ("zero1", "with the distributed optimizer"),
            ("none", "without it"),
            origin="derived",
        )
    else:
        kind = "zero1" if distributed else "none"
        draft.derive("sharding.kind", kind, "the distributed optimizer" if distributed else "no distributed optimizer")


def shared(draft: Draft, name: str) -> None:
    """Degrees, batches and kernels, the same for every trainer on Megatron Core."""
    for path in degrees.SPLITS:
        draft.default(path, 1, name)
    degrees.data_parallel(draft, "the processes over the other degrees")
    degrees.accumulation(draft, "the global batch over the micro batch and the data ranks")
    draft.default("checkpointing.kind", "none", name)
    draft.derive("checkpointing.reentrant", False, "Megatron's own checkpoint function")
    draft.derive("length.padded", False, "Megatron's attention is causal without a padding mask")
