"""LLM Foundry: MosaicML's train.py on Composer, as a file of its own or as `parameters` of an mcli job.

Source: llm-foundry 0.3-0.22, command_utils/train.py, models/hf/hf_causal_lm.py (float32 master weights),
optim/{adamw,lion}.py; composer 0.16-0.32 trainer/trainer.py, distributed/mosaic_fsdp.py, utils/parallelism.py.
"""

from __future__ import annotations

import re

from trainlint.documents import Document, Mapping, Node, Scalar
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, say
from trainlint.formats.reading import fragment_of, real, truth
from trainlint.formats.semantics import degrees
from trainlint.formats.semantics.interpolation import resolved
from trainlint.run import Value

NAME = "llm-foundry"
OWN = frozenset(
    (
        "device_train_microbatch_size", "global_train_batch_size", "max_duration", "device_train_batch_size",
        "device_eval_batch_size", "max_seq_len", "fsdp_config", "eval_interval", "algorithms",
    )
)  # fmt: skip
PRECISIONS = {"amp_bf16": "bfloat16", "amp_fp16": "float16", "amp_fp8": "bfloat16", "fp32": "float32"}
OPTIMIZERS = {"decoupled_adamw": "adamw_torch", "decoupled_lionw": "lion_32bit", "adalr_lion": "lion_32bit"}
_DURATION = r"(\d+)(ep|ba)"


def recognise(document: Document, root: Node | None) -> int:
    """A `train_loader` and a model with Composer's batch sizes and durations."""
    if not isinstance(root, Mapping):
        return 0
    inner = _parameters(root)
    names = inner.names()
    if "train_loader" not in names or "model" not in names:
        return 0
    return 95 if len(names & OWN) >= 2 else 0


def _parameters(root: Mapping) -> Mapping:
    inner = root.get("parameters")
    return inner if isinstance(inner, Mapping) and ("compute" in root or "image" in root or "command" in root) else root


def read(document: Document, root: Node | None) -> Fragment:
    """What the config says, `${variables.x}` resolved."""
    assert isinstance(root, Mapping)
    inner = _parameters(root)
    tree = resolved(inner) if "${" in document.text else inner
    fragment = fragment_of(NAME, document, tree, framework=NAME, launches=True)
    values = fragment.values
    gpus = root.find("compute.gpus") if inner is not root else None
    if isinstance(gpus, Scalar) and isinstance(gpus.value, int) and gpus.value > 0:
        values["parallel.world"] = say(NAME, "compute.gpus", gpus, gpus.value)
        values["device.count"] = say(NAME, "compute.gpus", gpus, gpus.value)
    kind_of = root.find("compute.gpu_type") if inner is not root else None
    if isinstance(kind_of, Scalar) and isinstance(kind_of.value, str):
        values["device.name"] = say(NAME, "compute.gpu_type", kind_of, kind_of.value)
    micro = fragment.entry("device_train_microbatch_size")
    if micro is not None and isinstance(micro.value, Scalar) and micro.value.value == "auto":
        values["batch.auto"] = say(NAME, "device_train_microbatch_size", micro.value, True)
    duration = fragment.entry("max_duration")
    found = (
        re.fullmatch(_DURATION, str(duration.value.value)) if duration and isinstance(duration.value, Scalar) else None
    )
    if found is not None and duration is not None and isinstance(duration.value, Scalar):
        path, count = (
            ("schedule.epochs", float(found[1])) if found[2] == "ep" else ("schedule.max_steps", int(found[1]))
        )
        values[path] = say(NAME, "max_duration", duration.value, count)
    optimizer = fragment.entry("optimizer.name")
    if optimizer is not None and isinstance(optimizer.value, Scalar) and optimizer.value.value in OPTIMIZERS:
        values["optimizer.name"] = say(NAME, "optimizer.name", optimizer.value, OPTIMIZERS[str(optimizer.value.value)])
    clip = fragment.value("algorithms.gradient_clipping.clipping_threshold")
    threshold = real(clip.value) if clip is not None else None
    if (
        clip is not None
        and threshold is not None
        and fragment.written("algorithms.gradient_clipping.clipping_type") == "norm"
    ):
        values["clip"] = Value(threshold, "written", clip.key, clip.place, clip.raw, file_format=NAME)
    if fragment.entry("fsdp_config") is not None and not _null(fragment, "fsdp_config"):
        entry = fragment.entry("fsdp_config")
        assert entry is not None
        values["sharding.kind"] = Value("fsdp", "written", "fsdp_config", entry.key.place, file_format=NAME)
    kind = str(fragment.written("model.peft_config.peft_type") or "").lower()
    peft = fragment.entry("model.peft_config")
    if peft is not None and isinstance(peft.value, Mapping) and peft.value.entries:
        values["adapter.kind"] = Value(
            kind or "lora", "written", "model.peft_config", peft.value.place, file_format=NAME
        )
    return fragment


def _null(fragment: Fragment, key: str) -> bool:
    entry = fragment.entry(key)
    return entry is not None and isinstance(entry.value, Scalar) and entry.value.value is None


def complete(draft: Draft) -> None:
    """Composer's regimes: float32 master weights, FSDP's policy by `mixed_precision`, rows of full length."""
    fragment = draft.fragments[0]
    draft.default("framework", NAME, NAME)
    text = fragment.written("train_loader.name") == "text"
    draft.default("objective", "pretrain" if text else "sft", "the data loader")
    adapted = draft.get("adapter.kind") is not None
    draft.derive("method", "lora" if adapted else "full", "`peft_config`")
    processes = degrees.data_parallel(draft, "the number of devices")
    degrees.accumulation(draft, "`global_train_batch_size` over the microbatch and the devices")
    if processes == 1:  # Composer goes back to DDP on a single device
        draft.values.pop("sharding.kind", None)
    draft.default("sharding.kind", "none", "no `fsdp_config`" if processes != 1 else "one device")
    _precision(draft, fragment)
    packing = fragment.entry("train_loader.dataset.packing_ratio")
    packed = packing is not None and not _null(fragment, "train_loader.dataset.packing_ratio")
    draft.derive("length.packing", text or packed, "the data loader")
    if truth(fragment.written("train_loader.dataset.allow_pad_trimming")) is False and not text:
        draft.derive("length.pad_to_max", True, "`allow_pad_trimming: false`")
    draft.default("checkpointing.kind", "none", "composer")
    draft.default("checkpointing.reentrant", False, "composer")
    draft.default("activation_offload", False, "composer")
    draft.default("loss", "full", NAME)
    draft.default("clip", 0.0, "no `gradient_clipping`")
    draft.derive("optimizer.foreach", False, "llm-foundry's optimizers step one tensor at a time")
    if adapted:
        draft.default("adapter.rank", 8, "peft")
        draft.default("adapter.dropout", 0.0, "peft")
        draft.derive("adapter.dtype", "float32", "llm-foundry loads float32 weights")


def _precision(draft: Draft, fragment: Fragment) -> None:
    word = fragment.written("precision")
    compute = PRECISIONS.get(word) if isinstance(word, str) else None
    draft.derive("precision.weights", "float32", "llm-foundry keeps float32 master weights")
    draft.derive("precision.grad_scaler", word == "amp_fp16", "`precision`")
    if word == "amp_fp8":
        draft.derive("precision.fp8", True, "`precision`")
    if draft.get("sharding.kind") == "fsdp":
        policy = fragment.written("fsdp_config.mixed_precision")
        policy = "DEFAULT" if fragment.entry("fsdp_config.mixed_precision") is None else policy
        draft.derive(
            "sharding.reshard_after_forward", draft.get("sharding.strategy") != "SHARD_GRAD_OP", "the strategy"
        )
        draft.default("sharding.strategy", "FULL_SHARD", "composer")
        draft.default("sharding.use_orig_params", True, "composer")
        draft.derive("sharding.wrap", "block", NAME)
        if draft.get("sharding.offload_parameters") == "cpu":
            draft.derive("sharding.offload_optimizer", "cpu", "FSDP's CPUOffload")
        if compute is not None and policy in ("PURE", "DEFAULT"):
            draft.derive("precision.compute", compute, f"FSDP's `mixed_precision: {policy}`")
            draft.derive("precision.autocast", False, "FSDP's mixed precision policy casts the shards")
            draft.derive("sharding.reduce_dtype", compute if policy == "PURE" else "float32", "`mixed_precision`")
            return
        if policy not in ("FULL",):
            return
        draft.derive("sharding.reduce_dtype", "float32", "`mixed_precision: FULL`")
    if compute is not None:
        draft.derive("precision.compute", compute, "`precision`")
        draft.derive("precision.autocast", compute != "float32", "`precision`")


FORMAT = Format(NAME, "LLM Foundry config", recognise, read, complete, NAME, NAME)
