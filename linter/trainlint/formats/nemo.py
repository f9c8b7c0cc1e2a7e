"""NeMo 1.x: `trainer`, `exp_manager` and a Megatron model, composed by Hydra.

Source: NeMo 1.23-2.0, nlp/models/language_modeling/{megatron_base_model,megatron_gpt_model,megatron_gpt_sft_model}.py,
nlp/parts/megatron_trainer_builder.py, core/optim/optimizers.py; NeMo-Framework-Launcher 24.x conf/.
"""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node, Scalar, Sequence
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, say
from trainlint.formats.reading import fragment_of, real, truth
from trainlint.formats.semantics import degrees, megatron
from trainlint.formats.semantics import lightning_precision as words
from trainlint.formats.semantics.interpolation import resolved

NAME = "nemo"
PACKAGES = ("training", "fine_tuning", "peft", "prompt_learning", "adapter_learning", "evaluation", "cfg")
"""Names under which the launcher puts these files."""
MODEL = frozenset(
    (
        "micro_batch_size", "global_batch_size", "tensor_model_parallel_size", "pipeline_model_parallel_size",
        "restore_from_path", "encoder_seq_length", "megatron_amp_O2", "train_ds", "validation_ds", "optim", "mcore_gpt",
    )
)  # fmt: skip
OPTIMIZERS = {
    "fused_adam": "adamw_torch_fused",
    "distributed_fused_adam": "adamw_torch_fused",
    "mcore_distributed_optim": "adamw_torch_fused",
    "megatron_fused_adam": "adamw_torch_fused",
    "adamw": "adamw_torch",
    "adam": "adamw_torch",
    "sgd": "sgd",
    "adafactor": "adafactor",
}
DISTRIBUTED = ("distributed_fused_adam", "mcore_distributed_optim")


def recognise(document: Document, root: Node | None) -> int:
    """A trainer beside an experiment manager or a model in NeMo's words, or the launcher's list of stages."""
    if not isinstance(root, Mapping):
        return 0
    names, trainer, model = root.names(), root.get("trainer"), root.get("model")
    own = len(model.names() & MODEL) if isinstance(model, Mapping) else 0
    if isinstance(trainer, Mapping) and ("exp_manager" in names or own >= 3):
        return 95 if own or "exp_manager" in names else 0
    if "defaults" in names and "launcher_scripts_path" in names and "stages" in names:
        return 80
    return 0


def read(document: Document, root: Node | None) -> Fragment:
    """What the config says. The launcher's own config trains nothing by itself: its stages stand in other files."""
    assert isinstance(root, Mapping)
    made = None
    if isinstance(root.get("defaults"), Sequence):
        from trainlint.formats.semantics.hydra import composed

        made = composed(document, root)
    tree = made.root if made is not None else root
    tree = resolved(tree, PACKAGES) if "${" in document.text or "???" in document.text or made is not None else tree
    fragment = fragment_of(NAME, document, tree, framework=NAME)
    fragment.launches = isinstance(tree.get("trainer"), Mapping) and isinstance(tree.get("model"), Mapping)
    if made is not None:
        fragment.references += made.references
    values = fragment.values
    degrees.positive(values)
    steps = values.get("schedule.max_steps")
    if steps is not None and isinstance(steps.value, int) and steps.value < 0:
        del values["schedule.max_steps"]
    optimizer = fragment.entry("model.optim.name")
    if optimizer is not None and isinstance(optimizer.value, Scalar) and optimizer.value.value in OPTIMIZERS:
        values["optimizer.name"] = say(
            NAME, "model.optim.name", optimizer.value, OPTIMIZERS[str(optimizer.value.value)]
        )
    betas = fragment.entry("model.optim.betas")
    if betas is not None and isinstance(betas.value, Sequence) and len(betas.value.items) == 2:
        for path, item in zip(("beta1", "beta2"), betas.value.items, strict=True):
            number = real(item.value) if isinstance(item, Scalar) else None
            if isinstance(item, Scalar) and number is not None:
                values[f"optimizer.{path}"] = say(NAME, "model.optim.betas", item, number)
    scheme = fragment.entry("model.peft.peft_scheme")
    if scheme is not None and isinstance(scheme.value, Scalar) and isinstance(scheme.value.value, str):
        word = scheme.value.value
        if word in ("lora", "qlora"):
            values["method"] = say(NAME, "model.peft.peft_scheme", scheme.value, word)
            values["adapter.kind"] = say(NAME, "model.peft.peft_scheme", scheme.value, "lora")
        elif word not in ("none", "null"):
            values["method"] = say(NAME, "model.peft.peft_scheme", scheme.value, "freeze")
            values["adapter.kind"] = say(NAME, "model.peft.peft_scheme", scheme.value, word)
    if "method" not in values or values["method"].value not in ("lora", "qlora"):
        for path in ("adapter.rank", "adapter.alpha", "adapter.dropout"):
            values.pop(path, None)
    return fragment


def complete(draft: Draft) -> None:
    """Megatron's states where `megatron_amp_O2` is on, autocast over float32 weights where it is not."""
    fragment = draft.fragments[0]
    draft.default("framework", NAME, NAME)
    sft = fragment.entry("model.data.train_ds") is not None
    draft.default("objective", "sft" if sft else "pretrain", "the data section")
    scheme = fragment.entry("model.peft.peft_scheme")
    if scheme is None or fragment.written("model.peft.peft_scheme") in (None, "none"):
        draft.derive("method", "full", "no `peft_scheme`")
    megatron.shared(draft, NAME)
    optimizer = fragment.written("model.optim.name")
    distributed = optimizer in DISTRIBUTED if isinstance(optimizer, str) else None
    word = words.meant(fragment.written("trainer.precision"))
    if word is not None and truth(fragment.written("model.megatron_amp_O2")) is True:
        megatron.states(draft, words.DTYPES[word.partition("-")[0]], distributed, "`megatron_amp_O2`")
    elif word is not None:
        words.regime(draft, word)
        if distributed is not None:
            draft.derive("sharding.kind", "zero1" if distributed else "none", "the optimizer")
    if draft.get("method") == "lora":
        draft.default("adapter.rank", 32, NAME)
        draft.default("adapter.targets", ("q_proj", "k_proj", "v_proj"), "NeMo adapts the fused attention projection")
        if draft.get("precision.weights") is not None:
            draft.derive("adapter.dtype", draft.get("precision.weights"), "NeMo makes adapters in the model's dtype")
    draft.derive("length.packing", not sft or draft.get("length.packing") is True, "the data section")
    draft.default("clip", 0.0, "no `gradient_clip_val`")


FORMAT = Format(NAME, "NeMo config", recognise, read, complete, NAME, "nemo-toolkit")
