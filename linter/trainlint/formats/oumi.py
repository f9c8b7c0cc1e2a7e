"""Oumi: `oumi train`, one config for the Trainer, TRL, verl and a loop of its own.

Source: oumi 0.1-0.5, core/configs/params/{model,training,peft,fsdp,deepspeed}_params.py,
core/configs/training_config.py.
"""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node, Scalar
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, say
from trainlint.formats.reading import fragment_of, truth
from trainlint.formats.semantics import peft, sharding
from trainlint.formats.semantics import trainer_arguments as arguments
from trainlint.formats.semantics import trainer_precision as precision
from trainlint.formats.semantics.interpolation import resolved
from trainlint.run import Value

NAME = "oumi"
MODEL = frozenset(("model_name", "model_max_length", "torch_dtype_str", "load_pretrained_weights", "adapter_model"))
TRAINING = frozenset(
    (
        "trainer_type", "use_peft", "enable_gradient_checkpointing", "mixed_precision_dtype", "dataloader_num_workers",
        "include_performance_metrics", "ddp_find_unused_parameters", "per_device_train_batch_size", "enable_wandb",
        "empty_device_cache_steps", "save_final_model", "optimizer", "output_dir", "num_train_epochs", "max_steps",
    )
)  # fmt: skip
OBJECTIVES = {"sft": "sft", "dpo": "dpo", "kto": "kto", "grpo": "grpo", "gkd": "gkd", "gold": "gold"}


def recognise(document: Document, root: Node | None) -> int:
    """`model.model_name` beside a `training` section of Oumi's."""
    if not isinstance(root, Mapping):
        return 0
    model, training = root.get("model"), root.get("training")
    if not isinstance(model, Mapping) or not isinstance(training, Mapping) or "model_name" not in model:
        return 0
    known = len(training.names() & TRAINING)
    return 95 if "trainer_type" in training or (known >= 3 and len(model.names() & MODEL) >= 2) else 60 if known else 0


def read(document: Document, root: Node | None) -> Fragment:
    """What the config says; adapter and quantization keys count with their switches."""
    assert isinstance(root, Mapping)
    tree = resolved(root) if "${" in document.text else root
    fragment = fragment_of(NAME, document, tree, framework=NAME, launches=True)
    values = fragment.values
    steps = values.get("schedule.max_steps")
    if steps is not None and isinstance(steps.value, int) and steps.value <= 0:
        del values["schedule.max_steps"]
    if truth(fragment.written("training.use_peft")) is not True:
        for path in [path for path in values if path.startswith(("adapter.", "quantization."))]:
            del values[path]
    elif truth(fragment.written("peft.q_lora")) is True:
        entry = fragment.entry("peft.q_lora_bits") or fragment.entry("peft.q_lora")
        bits = fragment.written("peft.q_lora_bits")
        if entry is not None and isinstance(entry.value, Scalar):
            values["quantization.bits"] = say(NAME, entry.key.raw, entry.value, bits if isinstance(bits, int) else 4)
    else:
        for path in [path for path in values if path.startswith("quantization.")]:
            del values[path]
    _flag(fragment, "training.mixed_precision_dtype")
    _engines(fragment)
    kind = str(fragment.written("training.trainer_type") or "").lower()
    fragment.facts["trainer"] = kind
    word = kind.rpartition("_")[2]
    entry = fragment.entry("training.trainer_type")
    if word in OBJECTIVES and entry is not None and isinstance(entry.value, Scalar):
        values["objective"] = say(NAME, "training.trainer_type", entry.value, OBJECTIVES[word])
    if kind.startswith("verl"):
        _verl(fragment)
    frozen = fragment.entry("model.freeze_layers")
    fragment.facts["freezes"] = frozen is not None and bool(getattr(frozen.value, "items", ()))
    return fragment


def _flag(fragment: Fragment, key: str) -> None:
    entry = fragment.entry(key)
    if entry is not None and isinstance(entry.value, Scalar):
        word = str(entry.value.value).lower()
        for name in ("bf16", "fp16"):
            fragment.values[f"precision.{name}"] = say(NAME, key, entry.value, word == name)


def _engines(fragment: Fragment) -> None:
    """`sharding.*` counts with the switch of its engine."""
    values = fragment.values
    fsdp = fragment.entry("fsdp.enable_fsdp")
    zero = fragment.entry("deepspeed.enable_deepspeed")
    stage = str(fragment.written("deepspeed.zero_stage") or "ZERO_0").lower().replace("_", "")
    if zero is not None and isinstance(zero.value, Scalar) and truth(zero.value.value) and stage[:4] == "zero":
        values["sharding.kind"] = say(NAME, "deepspeed.zero_stage", zero.value, stage)
        for key, path in (("offload_optimizer", "offload_optimizer"), ("offload_param", "offload_parameters")):
            device = fragment.value(f"deepspeed.{key}.device")
            if device is not None and str(device.value).lower() in ("cpu", "nvme"):
                low = str(device.value).lower()
                values[f"sharding.{path}"] = Value(
                    low, "written", device.key, device.place, device.raw, file_format=NAME
                )
        word = str(fragment.written("deepspeed.precision") or "").lower()
        if word in ("bf16", "fp16"):
            _flag(fragment, "deepspeed.precision")
    elif fsdp is not None and isinstance(fsdp.value, Scalar) and truth(fsdp.value.value):
        values["sharding.kind"] = say(NAME, "fsdp.enable_fsdp", fsdp.value, "fsdp")
    else:
        for path in [path for path in values if path.startswith("sharding.") or path == "precision.mixed"]:
            del values[path]


def _verl(fragment: Fragment) -> None:
    """What is passed on to verl stands under `training.verl_config_overrides`."""
    entry = fragment.entry("training.verl_config_overrides")
    for path in ("batch.micro", "batch.accumulation", "optimizer.name"):
        fragment.values.pop(path, None)
    if entry is not None and isinstance(entry.value, Mapping):
        inner = fragment_of("verl", fragment.document, entry.value)
        fragment.values |= {path: value for path, value in inner.values.items() if path not in fragment.values}


def complete(draft: Draft) -> None:
    """Oumi's own defaults, then what transformers, TRL and PEFT make of them."""
    fragment = draft.fragments[0]
    kind = str(fragment.facts.get("trainer") or "")
    draft.default("framework", "trl" if kind.startswith("trl") else "verl" if kind.startswith("verl") else NAME, NAME)
    if kind.startswith("verl"):
        return
    draft.default("objective", "sft", "the trainer")
    for path, value, unit in (("batch.micro", 8, "sample"), ("batch.eval", 8, "sample"), ("batch.accumulation", 1, "")):
        draft.default(path, value, NAME, unit)
    draft.default("optimizer.name", "adamw_torch", NAME)
    arguments.optimizer_defaults(draft)
    draft.default("checkpointing.kind", "none", NAME)
    for path in ("precision.bf16", "precision.fp16", "compile", "activation_offload"):
        draft.default(path, False, NAME)
    draft.default("kernels", "none", NAME)
    draft.default("precision.weights", "float32", "oumi's `torch_dtype_str`")
    draft.derive("loss", "liger" if draft.get("kernels") == "liger" else "full", "`enable_liger_kernel`")
    draft.default("sharding.kind", "none", "neither `fsdp` nor `deepspeed` is enabled")
    precision.attention(draft)
    adapted = truth(fragment.written("training.use_peft")) is True
    if fragment.facts.get("freezes"):
        draft.derive("method", "freeze", "`freeze_layers`")
    quantized = draft.get("quantization.bits") is not None
    draft.derive("method", "qlora" if quantized else "lora" if adapted else "full", "`use_peft` and `q_lora`")
    peft.adapter_defaults(draft, 8, 8, 0.0, NAME)
    peft.quantization_defaults(draft, "fp4", False, NAME)
    if quantized:
        draft.default("quantization.compute", "float32", NAME)
    precision.mixed_precision(draft)
    sharding.fsdp_defaults(draft)
    sharding.deepspeed_auto(draft, *draft.fragments)
    precision.reentrant(draft)
    if draft.get("objective") == "dpo":
        draft.derive("reference", "adapter-off" if adapted else "copy", "TRL's DPO trainer")


FORMAT = Format(NAME, "Oumi training config", recognise, read, complete, NAME, NAME)
