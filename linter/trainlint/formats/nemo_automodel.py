"""NeMo AutoModel: PyTorch recipes whose parts name their `_target_`, sharded by FSDP2.

Source: NeMo AutoModel 0.1-0.7, recipes/llm/train_ft.py, components/distributed/{config,fsdp2}.py,
components/_peft/lora.py, components/loss/*.py; its guide on mixed precision.
"""

from __future__ import annotations

import re

from trainlint.documents import Document, Mapping, Node, Scalar
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, say
from trainlint.formats.reading import fragment_of, listed, truth
from trainlint.formats.semantics import degrees, optimizer_names
from trainlint.formats.semantics import trainer_precision as precision
from trainlint.formats.semantics.interpolation import resolved
from trainlint.run import Value

NAME = "nemo-automodel"
PARTS = ("model", "dataset", "loss_fn", "optimizer", "distributed", "peft", "rng", "lr_scheduler")
LOSSES = {
    "MaskedCrossEntropy": "full",
    "CrossEntropyLoss": "full",
    "ChunkedCrossEntropy": "chunked",
    "FusedLinearCrossEntropy": "cut-ce",
    "LinearCrossEntropy": "cut-ce",
}
"""Losses by the name of their class; those over tensor-parallel logits stay open."""
_ENDING = r"\*\.?[a-z]\w*"
STRATEGIES = {"fsdp2": "fsdp2", "ddp": "none", "FSDP2Manager": "fsdp2", "DDPManager": "none"}


def recognise(document: Document, root: Node | None) -> int:
    """A `step_scheduler` beside a recipe, or beside parts that name AutoModel's classes."""
    if not isinstance(root, Mapping) or not isinstance(root.get("step_scheduler"), Mapping):
        return 0
    if "recipe" in root:
        return 95
    targets = [part.get("_target_") for name in PARTS if isinstance(part := root.get(name), Mapping)]
    named = [str(node.value) for node in targets if isinstance(node, Scalar)]
    if any(name.startswith("nemo_automodel") for name in named):
        return 95
    return 80 if named and {"fsdp", "distributed", "dist_env"} & root.names() else 0


def read(document: Document, root: Node | None) -> Fragment:
    """What the recipe says; degrees of `none` or `null` are left to the launcher."""
    assert isinstance(root, Mapping)
    tree = resolved(root) if "${" in document.text or "???" in document.text else root
    fragment = fragment_of(NAME, document, tree, framework=NAME, launches=True)
    values = fragment.values
    degrees.positive(values, "parallel.data", *degrees.SPLITS, "parallel.expert", "batch.effective")
    steps = fragment.value("packed_sequence.packed_sequence_size", "token")
    if steps is not None and isinstance(steps.value, int) and steps.value > 0:
        values["length.max"] = steps
        values["length.packing"] = Value(True, "written", steps.key, steps.place, steps.raw, file_format=NAME)
    optimizer = fragment.entry("optimizer._target_")
    if optimizer is not None and isinstance(optimizer.value, Scalar):
        name = optimizer_names.by_class(optimizer.value.value, truth(fragment.written("optimizer.fused")) is True)
        if name is not None:
            values["optimizer.name"] = say(NAME, "optimizer._target_", optimizer.value, name)
    loss = fragment.entry("loss_fn._target_")
    if loss is not None and isinstance(loss.value, Scalar):
        kind = LOSSES.get(str(loss.value.value).rpartition(".")[2])
        if kind is not None:
            values["loss"] = say(NAME, "loss_fn._target_", loss.value, kind)
    for key in ("distributed.strategy", "distributed._target_"):
        entry = fragment.entry(key)
        word = str(entry.value.value).rpartition(".")[2] if entry and isinstance(entry.value, Scalar) else ""
        if entry is not None and isinstance(entry.value, Scalar) and word in STRATEGIES:
            values["sharding.kind"] = say(NAME, key, entry.value, STRATEGIES[word])
    peft = fragment.entry("peft")
    if peft is not None and isinstance(peft.value, Mapping):
        place = peft.key.place
        values.setdefault("adapter.kind", Value("lora", "written", "peft", place, file_format=NAME))
        _targets(fragment)
    return fragment


def _targets(fragment: Fragment) -> None:
    entry = fragment.entry("peft.target_modules")
    names = listed(entry.value) if entry is not None else None
    if truth(fragment.written("peft.match_all_linear")) is True:
        entry, names = fragment.entry("peft.match_all_linear"), ("*",)
    if names and entry is not None:
        if "*" in names:
            names = ("all-linear",)
        elif all(re.fullmatch(_ENDING, name) for name in names):
            names = tuple(name.lstrip("*.") for name in names)
        elif any("*" in name for name in names):
            return
        place = entry.value.place
        fragment.values["adapter.targets"] = Value(names, "written", entry.key.raw, place, file_format=NAME)


def complete(draft: Draft) -> None:
    """Weights in the model's own dtype, bfloat16 compute by FSDP2's policy, no float32 copies beside them."""
    fragment = draft.fragments[0]
    draft.default("framework", NAME, NAME)
    draft.default("objective", "sft", "the recipe")
    adapted = draft.get("adapter.kind") is not None
    draft.derive(
        "method", "qlora" if adapted and draft.get("quantization.bits") else "lora" if adapted else "full", "`peft`"
    )
    freezes = fragment.entry("freeze_config")
    if freezes is not None and isinstance(freezes.value, Mapping) and not adapted:
        draft.values.pop("method")
    for path in degrees.SPLITS:
        draft.default(path, 1, NAME)
    if draft.get("parallel.data") is None:
        degrees.data_parallel(draft, "the devices over the other degrees")
    degrees.accumulation(draft, "`global_batch_size` over `local_batch_size` and the data ranks")
    draft.default("batch.micro", 1, NAME, "sample")
    _sharding(draft, fragment)
    diffusion = fragment.entry("flow_matching") is not None
    if not draft.has("precision.weights") and not diffusion:
        note = "AutoModel loads in the checkpoint's dtype"
        draft.either("precision.weights", *precision.checkpoint_dtype(draft, note), origin="derived")
    draft.default("precision.compute", "bfloat16", "AutoModel's FSDP2 policy")
    draft.derive("precision.autocast", False, "FSDP2's mixed precision policy casts the shards")
    draft.derive("precision.grad_scaler", False, NAME)
    draft.default("checkpointing.kind", "none", NAME)
    draft.derive("checkpointing.reentrant", False, NAME)
    draft.default("length.packing", False, "no `packed_sequence_size`")
    draft.default("compile", False, NAME)
    draft.default("activation_offload", False, NAME)
    if adapted:
        draft.default("adapter.rank", 8, NAME)
        draft.default("adapter.alpha", 32.0, NAME)
        draft.default("adapter.dropout", 0.0, NAME)
        weights = draft.get("precision.weights")
        if weights is not None:
            draft.derive("adapter.dtype", weights, "AutoModel makes adapters in the model's dtype")


def _sharding(draft: Draft, fragment: Fragment) -> None:
    if fragment.entry("fsdp") is not None:
        draft.derive("sharding.kind", "fsdp2", "`fsdp`")
    data = draft.get("parallel.data")
    if data == 1 and degrees.world(draft) == 1:
        draft.values.pop("sharding.kind", None)
        draft.derive("sharding.kind", "none", "one device")
    if draft.get("sharding.kind") == "fsdp2":
        draft.derive("sharding.reshard_after_forward", True, NAME)
        draft.derive("sharding.wrap", "block", NAME)
        if draft.get("sharding.offload_parameters") == "cpu":
            draft.derive("sharding.offload_optimizer", "cpu", "FSDP2's CPU offload")


FORMAT = Format(NAME, "NeMo AutoModel recipe", recognise, read, complete, NAME, NAME)
