"""LitGPT: `litgpt finetune` and `litgpt pretrain`, read by jsonargparse.

Source: litgpt 0.3.1, 0.4.13, 0.5.13, finetune/{lora,full,adapter}.py, pretrain.py, utils.py; lightning 2.3-2.6
fabric/plugins/precision/bitsandbytes.py, fabric/strategies/{fsdp,model_parallel}.py.
"""

from __future__ import annotations

from collections import abc

from trainlint.documents import Document, Mapping, Node, Scalar
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, say
from trainlint.formats.lightning import optimizer_class
from trainlint.formats.reading import fragment_of, truth
from trainlint.formats.semantics import degrees
from trainlint.formats.semantics import lightning_precision as words
from trainlint.formats.semantics.release import by_release
from trainlint.formats.semantics.trainer_precision import engine as held
from trainlint.run import Value

NAME = "litgpt"
TRAIN = frozenset(
    ("global_batch_size", "micro_batch_size", "max_seq_length", "lr_warmup_steps", "max_tokens", "min_lr")
)
OWN = frozenset(("checkpoint_dir", "initial_checkpoint_dir", "model_config", "model_name", "tokenizer_dir"))
PRETRAIN = frozenset(("model_name", "model_config", "initial_checkpoint_dir", "tokenizer_dir"))
QUANTIZED: dict[str, tuple[int, str, bool]] = {
    "bnb.nf4": (4, "nf4", False),
    "bnb.nf4-dq": (4, "nf4", True),
    "bnb.fp4": (4, "fp4", False),
    "bnb.fp4-dq": (4, "fp4", True),
    "bnb.int8-training": (8, "int8", False),
}
"""`quantize` → bits, type, double quantization."""
PARTS = {
    "query": ("q_proj", True),
    "key": ("k_proj", False),
    "value": ("v_proj", True),
    "projection": ("o_proj", False),
    "mlp": ("mlp", False),
    "head": ("lm_head", False),
}
"""`lora_<part>` → the layer, and whether it is adapted by default."""
COMMANDS = {
    "finetune": "lora",
    "finetune_lora": "lora",
    "finetune_full": "full",
    "finetune_adapter": "adapter",
    "finetune_adapter_v2": "adapter",
    "pretrain": "pretrain",
}
"""`litgpt …` → what trains."""
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")


def recognise(document: Document, root: Node | None) -> int:
    """A `train` section with LitGPT's batch keys beside a checkpoint folder or a model's name."""
    if not isinstance(root, Mapping):
        return 0
    train = root.get("train")
    if not isinstance(train, Mapping) or not root.names() & OWN:
        return 0
    return 95 if len(train.names() & TRAIN) >= 2 else 0


def read(document: Document, root: Node | None) -> Fragment:
    """What the config says. Which command reads it shows in its keys: LoRA's, pretraining's, or neither."""
    fragment = fragment_of(NAME, document, root, framework=NAME, launches=True)
    keys = fragment.keys
    fragment.facts["command"] = (
        "pretrain" if keys.keys() & PRETRAIN else "lora" if any(key.startswith("lora_") for key in keys) else "finetune"
    )
    folder = fragment.values.get("model.id")
    if folder is not None and folder.key == "checkpoint_dir" and isinstance(folder.value, str):
        entry = fragment.entry("checkpoint_dir")
        parts = folder.value.rstrip("/").split("/")[-2:]
        if entry is not None and isinstance(entry.value, Scalar):
            fragment.values["model.id"] = say(NAME, "checkpoint_dir", entry.value, "/".join(parts))
    quantize = fragment.value("quantize")
    if quantize is not None and quantize.value in QUANTIZED and isinstance(quantize.value, str):
        entry = fragment.entry("quantize")
        assert entry is not None
        assert isinstance(entry.value, Scalar)
        for path, value in zip(("bits", "type", "double"), QUANTIZED[quantize.value], strict=True):
            fragment.values[f"quantization.{path}"] = say(NAME, "quantize", entry.value, value)
    if fragment.facts["command"] == "lora":
        _targets(fragment)
    optimizer_class(fragment, "optimizer", fused=fragment.facts["command"] == "pretrain")
    degrees.positive(fragment.values)
    return fragment


def _targets(fragment: Fragment) -> None:
    written = {part: truth(fragment.written(f"lora_{part}")) for part in PARTS}
    if set(written.values()) == {None}:
        return
    chosen = [
        name for part, (name, default) in PARTS.items() if (written[part] if written[part] is not None else default)
    ]
    if set(ATTENTION) <= set(chosen) and "mlp" in chosen:
        names: tuple[str, ...] = ("all-linear", *(("lm_head",) if "lm_head" in chosen else ()))
    elif chosen == ["q_proj", "v_proj"]:
        names = ("qv",)
    elif chosen == list(ATTENTION):
        names = ("attention",)
    else:
        names = tuple(chosen)
    if "mlp" in names:
        names = tuple(
            part for name in names for part in (("gate_proj", "up_proj", "down_proj") if name == "mlp" else (name,))
        )
    key = next((f"lora_{part}" for part, flag in written.items() if flag is not None), "")
    entry = fragment.entry(key)
    fragment.values["adapter.targets"] = Value(
        names, "written" if entry else "default", key, entry.value.place if entry else None, file_format=NAME
    )


def complete(draft: Draft) -> None:
    """Lightning Fabric's regimes by command and number of devices."""
    fragment = draft.fragments[0]
    command = _told(draft) or fragment.facts.get("command")
    draft.default("framework", NAME, NAME)
    if truth(fragment.written("train.tie_embeddings")) is not True:
        _untie(draft)
    draft.default("objective", "pretrain" if command == "pretrain" else "sft", NAME)
    if command == "lora":
        draft.derive("method", "qlora" if draft.get("quantization.bits") else "lora", "LoRA's command or keys")
    elif command == "full":
        draft.derive("method", "full", "`litgpt finetune_full`")
    elif command == "pretrain":
        draft.derive("method", "full", "`litgpt pretrain`")
    elif draft.has("quantization.bits"):
        draft.derive("method", "qlora", "only adapters train on a quantized base")
    elif command != "adapter":  # `litgpt finetune` is finetune_lora
        commands = (("lora", "`litgpt finetune_lora`"), ("full", "`litgpt finetune_full`"))
        draft.either("method", *commands, origin="derived")
    pretrain = command == "pretrain"
    adapted = None if draft.get("method") is None else draft.get("method") in ("lora", "qlora")
    if pretrain:
        draft.default("batch.micro", 4, NAME, "sample")
        draft.default("batch.effective", 512, NAME, "sample")
    else:
        by_release(draft, "batch.micro", NAME, ("", 4), ("0.5", 1), unit="sample")
        by_release(draft, "batch.effective", NAME, ("", 64), ("0.5", 16), unit="sample")
    draft.default("parallel.nodes", 1, NAME)
    if fragment.entry("devices") is None and not pretrain:
        draft.default("parallel.per_node", 1, NAME)
    processes = degrees.data_parallel(draft, "`devices` times `num_nodes`")
    degrees.accumulation(draft, "`global_batch_size` over `micro_batch_size` and the devices")
    _engine(draft, processes, pretrain, adapted)
    _precision(draft, fragment, adapted)
    if adapted:
        draft.default("adapter.kind", "lora", NAME)
        draft.default("adapter.rank", 8, NAME)
        draft.default("adapter.alpha", 16.0, NAME)
        draft.default("adapter.dropout", 0.05, NAME)
        draft.default("adapter.targets", ("qv",), NAME)
    draft.derive("length.packing", pretrain, "`litgpt pretrain` fills every row" if pretrain else "batches are padded")
    draft.derive("length.padded", False, "LitGPT's attention is causal and carries no padding mask")
    draft.default("optimizer.name", "adamw_torch_fused" if pretrain else "adamw_torch", NAME)
    draft.default("attention", "sdpa", NAME)
    losses = (("chunked", "LoRA projects 128 tokens at a time"), ("full", "`litgpt finetune_full`"))
    draft.either("loss", *(losses if adapted is None else losses[:1] if adapted else losses[1:]), origin="derived")
    draft.default("clip", 1.0 if pretrain else 0.0, NAME)
    draft.default("activation_offload", False, NAME)


def _told(draft: Draft) -> str | None:
    """The command that a shell script starts LitGPT with, or None."""
    for fragment in draft.fragments:
        starts = fragment.facts.get("starts")
        for start in starts if isinstance(starts, tuple) else ():
            words = getattr(start, "positional", ())
            if getattr(start, "launcher", "") == NAME and words:
                return COMMANDS.get(words[0].text)
    return None


def _untie(draft: Draft) -> None:
    """LitGPT holds the output head as a tensor of its own, also where the checkpoint has only the embedding."""
    note = "LitGPT unties what the checkpoint ties"
    config = draft.get("model.config")
    if draft.get("model.shape.tied") is not True or not isinstance(config, abc.Mapping):
        return
    draft.values["model.shape.tied"] = Value(False, "derived", note=note)
    untied = {**config, "tie_word_embeddings": False}
    draft.values["model.config"] = Value(untied, "derived", note=note)


def _engine(draft: Draft, processes: int | None, pretrain: bool, adapted: bool | None) -> None:
    kinds = ("fsdp2", "fsdp") if adapted is None else ("fsdp2",) if adapted else ("fsdp",)
    if processes is None:
        several = [(kind, "on several devices") for kind in kinds]
        draft.either("sharding.kind", *several, ("none", "on one device"), origin="derived")
    elif processes == 1:
        draft.derive("sharding.kind", "none", "one device")
    else:
        draft.either("sharding.kind", *((kind, "several devices") for kind in kinds), origin="derived")
    if held(draft) in ("fsdp", "fsdp2"):
        draft.derive("sharding.strategy", "HYBRID_SHARD" if pretrain else "FULL_SHARD", NAME)
        draft.derive("sharding.reshard_after_forward", True, NAME)
        draft.derive("sharding.wrap", "block", NAME)
    if pretrain or processes == 1:
        draft.derive("checkpointing.kind", "none", "`litgpt pretrain`" if pretrain else "one device")
    elif processes is None:
        draft.either("checkpointing.kind", ("full", "on several devices"), ("none", "on one device"), origin="derived")
    else:
        draft.derive("checkpointing.kind", "full", "LitGPT recomputes every block on several devices")
    draft.derive("checkpointing.reentrant", False, "Fabric wraps blocks with the non-reentrant checkpoint")


def _precision(draft: Draft, fragment: Fragment, adapted: bool | None) -> None:
    written = fragment.written("precision")
    word = words.meant(written)
    engine = "fsdp" if held(draft) in ("fsdp", "fsdp2") else ""
    if written is None:
        draft.derive("precision.weights", "float32", "LitGPT trains in mixed precision by default")
        draft.either(
            "precision.compute",
            ("bfloat16", "a device with bfloat16"),
            ("float16", "a device without bfloat16"),
        )
        draft.derive("precision.autocast", not engine, "LitGPT trains in mixed precision by default")
    elif word is not None:
        words.regime(draft, word, engine)
    weights = draft.get("precision.weights")
    if adapted and weights is not None:
        draft.derive("adapter.dtype", weights, "LitGPT makes adapters in the dtype of the weights")
    if draft.has("quantization.bits"):
        draft.derive("quantization.prepared", False, "Fabric casts to the precision's dtype what is not quantized")
        draft.default("quantization.storage", "uint8", "bitsandbytes")
        if weights is not None:
            draft.derive("quantization.compute", weights, "the precision's dtype")


FORMAT = Format(NAME, "LitGPT config", recognise, read, complete, NAME, NAME)
