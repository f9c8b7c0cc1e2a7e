"""GPT-NeoX: pre-training over Megatron's layers and DeepSpeed; keys with underscores or hyphens, in one or more files.

Source: GPT-NeoX 2.0 and main (2024-2025), megatron/neox_arguments/{arguments,neox_args}.py, megatron/training.py.
"""

from __future__ import annotations

from trainlint.documents import Document, Entry, Mapping, Node, Scalar, Sequence
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, say
from trainlint.formats.reading import read_marked, real, truth
from trainlint.formats.semantics import degrees, sharding
from trainlint.formats.semantics import trainer_precision as precision
from trainlint.run import Value

NAME = "gpt-neox"
OWN = frozenset(
    (
        "pipe_parallel_size", "model_parallel_size", "checkpoint_activations", "partition_activations", "pos_emb",
        "no_weight_tying", "gpt_j_residual", "output_layer_parallelism", "norm", "bias_gelu_fusion", "rotary_pct",
        "scaled_upper_triang_masked_softmax_fusion", "output_layer_init_method", "attention_config", "data_impl",
        "synchronize_each_layer", "checkpoint_factor", "make_vocab_size_divisible_by", "lr_decay_iters",
        "keep_last_n_checkpoints",
    )
)  # fmt: skip
MODEL = frozenset(("num_layers", "hidden_size", "num_attention_heads", "seq_length"))
OPTIMIZERS = {"adam": "adamw_torch_fused", "onebitadam": "onebit_adam", "sgd": "sgd", "lion": "lion_32bit"}
PRECISIONS = {"fp16": "float16", "bfloat16": "bfloat16", "fp32": "float32"}
OBJECTIVES = {"normal": "pretrain", "dpo": "dpo", "kto": "kto", "rm": "reward", "reinforce": "reinforce"}


def recognise(document: Document, root: Node | None) -> int:
    """A model's sizes or a training's batch with several keys that only GPT-NeoX has."""
    if not isinstance(root, Mapping) or document.syntax not in ("yaml", "json"):
        return 0
    names = frozenset(name.replace("-", "_") for name in root.names())
    own = len(names & OWN)
    if own < 2:
        return 0
    if names & {"pipe_parallel_size", "model_parallel_size"} and own >= 3 and len(names & MODEL) >= 2:
        return 95
    return 85 if own >= 4 and (names & MODEL or "train_micro_batch_size_per_gpu" in names) else 0


def read(document: Document, root: Node | None) -> Fragment:
    """What one of the files says; one without an optimizer is only a part of a run."""
    assert isinstance(root, Mapping)
    tree = _underscored(root)
    fragment = Fragment(NAME, document, tree, framework=NAME, launches="optimizer" in tree)
    read_marked(fragment, "deepspeed")
    fragment.values = {path: _own(value) for path, value in fragment.values.items()}
    read_marked(fragment, NAME)
    values = fragment.values
    pipeline = values.get("parallel.pipeline")
    if pipeline is not None and pipeline.value == 0:
        values["parallel.pipeline"] = Value(
            1, "written", pipeline.key, pipeline.place, pipeline.raw, note="0: no pipeline engine", file_format=NAME
        )
    degrees.positive(values)
    kind = fragment.entry("optimizer.type")
    values.pop("optimizer.name", None)
    if kind is not None and isinstance(kind.value, Scalar):
        name = OPTIMIZERS.get(str(kind.value.value).lower())
        if truth(fragment.written("use_bnb_optimizer")) is True and name == "adamw_torch_fused":
            name = "adamw_bnb_8bit"
        if name is not None:
            values["optimizer.name"] = say(NAME, "optimizer.type", kind.value, name)
    betas = fragment.entry("optimizer.params.betas")
    if betas is not None and isinstance(betas.value, Sequence) and len(betas.value.items) == 2:
        for path, item in zip(("beta1", "beta2"), betas.value.items, strict=True):
            number = real(item.value) if isinstance(item, Scalar) else None
            if isinstance(item, Scalar) and number is not None:
                values[f"optimizer.{path}"] = say(NAME, "optimizer.params.betas", item, number)
    _precision(fragment)
    objective = fragment.entry("train_impl")
    if objective is not None and isinstance(objective.value, Scalar) and objective.value.value in OBJECTIVES:
        values["objective"] = say(NAME, "train_impl", objective.value, OBJECTIVES[str(objective.value.value)])
    if "flash" in document.text and fragment.entry("attention_config") is not None:
        _attention(fragment)
    if fragment.entry("te_fp8_format") is not None and _builds_te(fragment):
        entry = fragment.entry("te_fp8_format")
        assert entry is not None
        values["precision.fp8"] = Value(True, "written", "te_fp8_format", entry.value.place, file_format=NAME)
    return fragment


def _underscored(root: Mapping) -> Mapping:
    """The keys as GPT-NeoX reads them, `-` as `_`, at their places."""
    entries = []
    for entry in root.entries:
        name = entry.name
        key = Scalar(name.replace("-", "_"), entry.key.raw, entry.key.place) if "-" in name else entry.key
        value = _underscored(entry.value) if isinstance(entry.value, Mapping) else entry.value
        entries.append(Entry(key, value, entry.merged))
    return Mapping(tuple(entries), root.place)


def _own(value: Value[object]) -> Value[object]:
    return Value(value.value, value.origin, value.key, value.place, value.raw, value.unit, value.note, NAME)


def _precision(fragment: Fragment) -> None:
    """`fp16.enabled` first, then `bf16.enabled`, then `precision`."""
    word = fragment.entry("precision")
    sections = [truth(fragment.written(f"{name}.enabled")) for name in ("fp16", "bf16")]
    if True not in sections and word is not None and isinstance(word.value, Scalar):
        dtype = PRECISIONS.get(str(word.value.value))
        if dtype is not None:
            for name, meant in (("fp16", "float16"), ("bf16", "bfloat16")):
                fragment.values[f"precision.{name}"] = say(NAME, "precision", word.value, dtype == meant)


def _attention(fragment: Fragment) -> None:
    entry = fragment.entry("attention_config")
    if entry is not None and "flash" in _words(entry.value):
        fragment.values["attention"] = Value(
            "flash", "written", "attention_config", entry.value.place, file_format=NAME
        )


def _words(node: Node) -> set[object]:
    if isinstance(node, Sequence):
        return set[object]().union(*(_words(item) for item in node.items))
    return {node.value} if isinstance(node, Scalar) else set()


def _builds_te(fragment: Fragment) -> bool:
    keys = ("te_columnparallel", "te_rowparallel", "te_layernorm_mlp", "te_mha", "te_fp8_mha")
    return any(truth(fragment.written(key)) is True for key in keys)


def complete(draft: Draft) -> None:
    """DeepSpeed's regimes under Megatron's degrees; every row is full."""
    draft.default("framework", NAME, NAME)
    draft.derive("method", "full", NAME)
    draft.default("objective", "pretrain", NAME)
    for path in degrees.SPLITS:
        draft.default(path, 1, NAME)
    degrees.data_parallel(draft, "the processes over the other degrees")
    draft.default("batch.accumulation", 1, NAME)
    draft.default("sharding.kind", "zero0", "no `zero_optimization`")
    draft.default("precision.fp16", False, NAME)
    draft.default("precision.bf16", False, NAME)
    draft.default("precision.weights", "float32", NAME)
    precision.mixed_precision(draft)
    sharding.deepspeed_auto(draft, *draft.fragments)
    packed = draft.get("objective") == "pretrain"
    draft.derive("length.packing", packed, "rows are cut from one stream of text" if packed else "pairs are padded")
    draft.derive("length.padded", False, "the attention is causal and carries no padding mask")
    draft.default("checkpointing.kind", "none", NAME)
    draft.default("checkpointing.every", 1, NAME)
    draft.derive("checkpointing.reentrant", True, "Megatron's own checkpoint function")
    draft.default("attention", "eager", "GPT-NeoX's attention without `flash`")
    draft.default("loss", "full", NAME)
    draft.default("clip", 1.0, NAME)
    if draft.get("objective") in ("dpo", "kto"):
        draft.derive("reference", "copy", "GPT-NeoX keeps a second model")


FORMAT = Format(NAME, "GPT-NeoX config", recognise, read, complete, NAME, NAME)
