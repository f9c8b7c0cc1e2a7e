"""MaxText: JAX on TPU and GPU, a config over its `base.yml`.

Source: MaxText 2024-2025, configs/base.yml, pyconfig.py.
"""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment
from trainlint.formats.reading import fragment_of, whole
from trainlint.run import Value

NAME = "maxtext"
OWN = frozenset(
    (
        "base_config", "per_device_batch_size", "remat_policy", "max_target_length", "scan_layers", "use_iota_embed",
        "dataset_type", "base_output_directory", "base_emb_dim", "base_num_decoder_layers", "logits_dot_in_fp32",
        "ici_fsdp_parallelism", "dcn_data_parallelism", "dcn_fsdp_parallelism", "ici_tensor_parallelism",
    )
)  # fmt: skip
REMAT = {"full": "full", "minimal": "selective", "save_nothing": "full"}
SPLITS = {
    "parallel.tensor": "tensor",
    "parallel.pipeline": "pipeline",
    "parallel.context": "context",
    "parallel.expert": "expert",
}


def recognise(document: Document, root: Node | None) -> int:
    """Several of MaxText's keys, a mesh axis or the batch among them."""
    if not isinstance(root, Mapping):
        return 0
    own = len(root.names() & OWN)
    return 90 if own >= 3 else 0


def read(document: Document, root: Node | None) -> Fragment:
    """What the config says; degrees are products of those within a slice (`ici`) and across (`dcn`)."""
    fragment = fragment_of(NAME, document, root, framework=NAME, launches=True)
    for path, axis in SPLITS.items():
        parts = [(key, whole(fragment.written(key))) for key in (f"ici_{axis}_parallelism", f"dcn_{axis}_parallelism")]
        degree = 1
        for _, part in parts:
            degree *= part if part is not None else 1
        key = next((key for key, part in parts if part is not None), "")
        entry = fragment.entry(key)
        if entry is not None and degree > 0:
            fragment.values[path] = Value(degree, "written", key, entry.value.place, file_format=NAME)
    policy = fragment.value("remat_policy")
    kind = REMAT.get(str(policy.value)) if policy is not None else None
    if policy is not None and kind is not None:
        fragment.values["checkpointing.kind"] = Value(
            kind, "written", policy.key, policy.place, policy.raw, file_format=NAME
        )
    quantization = fragment.value("quantization")
    if quantization is not None and "fp8" in str(quantization.value):
        fragment.values["precision.fp8"] = Value(
            True, "written", "quantization", quantization.place, quantization.raw, file_format=NAME
        )
    return fragment


def complete(draft: Draft) -> None:
    """float32 weights and bfloat16 compute, everything over full rows; memory is XLA's to plan."""
    draft.default("framework", NAME, NAME)
    draft.default("method", "full", NAME)
    draft.default("objective", "pretrain", NAME)
    draft.default("precision.weights", "float32", "base.yml")
    draft.default("precision.compute", "bfloat16", "base.yml")
    draft.default("length.packing", True, "base.yml")
    draft.default("checkpointing.kind", "full", "base.yml")


FORMAT = Format(NAME, "MaxText config", recognise, read, complete, NAME, NAME)
