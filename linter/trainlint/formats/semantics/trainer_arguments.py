"""What transformers' TrainingArguments mean for a run: reading them, and their defaults by release.

Sources: transformers 4.30.2-5.24.0 training_args.py, trainer.py.
"""

from __future__ import annotations

from dataclasses import replace

from trainlint.documents import Entry, Mapping, Node, Place, Scalar, Sequence
from trainlint.formats import deepspeed
from trainlint.formats.format import Draft
from trainlint.formats.fragment import Fragment, Reference
from trainlint.formats.semantics import peft, sharding
from trainlint.formats.semantics import trainer_precision as precision
from trainlint.formats.semantics.release import by_release, release
from trainlint.run import Value

ARGUMENTS = frozenset(
    (
        "output_dir", "overwrite_output_dir", "do_train", "do_eval", "do_predict", "evaluation_strategy",
        "eval_strategy", "per_device_train_batch_size", "per_device_eval_batch_size", "per_gpu_train_batch_size",
        "gradient_accumulation_steps", "learning_rate", "weight_decay", "adam_beta1", "adam_beta2", "adam_epsilon",
        "max_grad_norm", "num_train_epochs", "max_steps", "lr_scheduler_type", "lr_scheduler_kwargs", "warmup_ratio",
        "warmup_steps", "logging_dir", "logging_strategy", "logging_first_step", "logging_steps", "save_strategy",
        "save_steps", "save_total_limit", "save_safetensors", "no_cuda", "use_cpu", "seed", "data_seed", "bf16", "fp16",
        "tf32", "bf16_full_eval", "fp16_full_eval", "ddp_backend", "dataloader_drop_last", "dataloader_num_workers",
        "eval_steps", "run_name", "remove_unused_columns", "load_best_model_at_end", "metric_for_best_model",
        "greater_is_better", "fsdp", "fsdp_config", "deepspeed", "label_smoothing_factor", "optim", "optim_args",
        "adafactor", "group_by_length", "report_to", "ddp_find_unused_parameters", "ddp_timeout",
        "dataloader_pin_memory", "push_to_hub", "resume_from_checkpoint", "hub_model_id", "hub_strategy",
        "gradient_checkpointing", "gradient_checkpointing_kwargs", "auto_find_batch_size", "torch_compile",
        "neftune_noise_alpha", "use_liger_kernel", "activation_checkpointing", "logging_nan_inf_filter",
        "eval_accumulation_steps", "local_rank", "log_level", "include_tokens_per_second", "torch_empty_cache_steps",
    )
)  # fmt: skip
"""Names by which TrainingArguments are known at a glance (not all of them)."""

GROUPS = frozenset(
    (
        "training_args", "training_arguments", "TrainingArguments", "train_args", "trainer_args", "training_config",
        "model_args", "model_arguments", "data_args", "data_arguments", "dataset_args", "script_args", "peft_args",
        "lora_args", "trainer_arguments", "sft_config", "dpo_config", "grpo_config", "model_config", "lora_config",
    )
)  # fmt: skip
"""Mappings under which scripts of their own group the arguments that HfArgumentParser takes flat."""

OWN_LOOP = frozenset(("with_tracking", "checkpointing_steps", "keep_last_n_checkpoints", "dataset_mixer_list"))
"""Arguments of scripts that run their own loop on accelerate: the Trainer's defaults do not hold for them."""


FREEZING = frozenset(("spectrum_config_path", "unfrozen_parameters", "freeze_layers", "num_layers_unfrozen"))
"""Arguments of scripts that train a part of the model."""


def flattened(root: Mapping) -> Mapping:
    """The arguments as the parser sees them: grouped ones beside those at the top."""
    groups = [e for e in root.entries if e.name in GROUPS and isinstance(e.value, Mapping)]
    if not groups:
        return root
    entries: list[Entry] = [e for e in root.entries if e not in groups]
    for group in groups:
        if isinstance(group.value, Mapping):
            entries += group.value.entries
    return Mapping(tuple(entries), root.place)


def finish_reading(fragment: Fragment) -> None:
    """What the schema's marks can not say: inline DeepSpeed and FSDP blocks, data set mixtures, `max_steps: -1`."""
    values = fragment.values
    steps = values.get("schedule.max_steps")
    if steps is not None and isinstance(steps.value, int) and steps.value <= 0:
        del values["schedule.max_steps"]  # -1: the epochs decide
    block = fragment.entry("deepspeed")
    if block is not None and isinstance(block.value, Mapping):
        deepspeed.read_block(fragment, block.value, "deepspeed")
    sharding.trainer_fsdp(fragment)
    block = fragment.entry("fsdp_config")
    if fragment.facts.get("fsdp") and block is not None and isinstance(block.value, Mapping):
        sharding.fsdp_block(fragment, block.value, "fsdp_config.")
    if not fragment.facts.get("fsdp"):
        fragment.references[:] = [one for one in fragment.references if one.role != "accelerate"]
    mixtures = _mixture(fragment)
    if mixtures and "data.names" not in values:
        names = tuple(name for name, _ in mixtures)
        values["data.names"] = Value(names, "written", "dataset_mixer", mixtures[0][1], file_format=fragment.format)
        fragment.references += [Reference("dataset", name, place) for name, place in mixtures]
    if fragment.keys.keys() & FREEZING:
        fragment.facts["freezes"] = True
    if fragment.keys.keys() & OWN_LOOP:
        fragment.facts["own_loop"] = True


def _mixture(fragment: Fragment) -> list[tuple[str, Place]]:
    """The data sets of a `dataset_mixer` (a mapping to shares), `dataset_mixer_list` or `dataset_mixture`."""
    entry = fragment.entry("dataset_mixer") or fragment.entry("dataset_mixer_list")
    if entry is not None and isinstance(entry.value, Mapping):
        return [(below.name, below.key.place) for below in entry.value.index.values()]
    if entry is not None and isinstance(entry.value, Sequence):
        named = [item for item in entry.value.items[::2] if isinstance(item, Scalar)]
        return [(item.value, item.place) for item in named if isinstance(item.value, str)]
    mixture = fragment.entry("dataset_mixture.datasets")
    if mixture is None or not isinstance(mixture.value, Sequence):
        return []
    ids = [item.get("id") for item in mixture.value.items if isinstance(item, Mapping)]
    return [(node.value, node.place) for node in ids if isinstance(node, Scalar) and isinstance(node.value, str)]


def says(fragment: Fragment, name: str) -> bool | None:
    """A flag as written, or None where it is absent or no flag."""
    value = fragment.written(name)
    return value if isinstance(value, bool) else None


def complete(draft: Draft, fragment: Fragment) -> None:
    """The defaults of TrainingArguments, then precision, sharding and what follows. The last step of a format.

    A format with defaults of its own (TRL) puts those first: what is known is not put again.
    """
    tf = "transformers"
    draft.derive("framework", tf, "the arguments")
    batch_defaults(draft)
    if fragment.facts.get("own_loop"):
        return
    optimizer_defaults(draft)
    by_release(draft, "checkpointing.kind", tf, ("", "none"))
    for path in ("precision.bf16", "precision.fp16", "precision.full_eval", "compile", "activation_offload"):
        draft.default(path, False, tf)
    draft.default("kernels", "none", tf)
    draft.derive("loss", "liger" if draft.get("kernels") == "liger" else "full", "`use_liger_kernel`")
    precision.shifted_loss(draft)
    draft.default("zero_grad", "to-none", tf)
    draft.default("seed", 42, tf)
    draft.default("schedule.name", "linear", tf)
    if not draft.has("schedule.max_steps"):
        draft.default("schedule.epochs", 3.0, tf, "epoch")
    draft.default("checkpoint.strategy", "steps", tf)
    draft.default("evaluation.strategy", "no", tf)
    if draft.get("evaluation.strategy") != "no" and draft.get("batch.eval") is not None:
        draft.derive("evaluation.batch", draft.get("batch.eval"), "`per_device_eval_batch_size`", "sample")
    precision.attention(draft)
    regime(draft, fragment, fragment.written("dtype") or fragment.written("torch_dtype"))
    precision.reentrant(draft)


def batch_defaults(draft: Draft) -> None:
    """Batch sizes of 8 and no accumulation."""
    draft.default("batch.micro", 8, "transformers", "sample")
    draft.default("batch.eval", 8, "transformers", "sample")
    draft.default("batch.accumulation", 1, "transformers")


def optimizer_defaults(draft: Draft) -> None:
    """AdamW: which implementation hangs on transformers' and torch's release; rate, betas, decay, clipping."""
    tf = "transformers"
    engine = draft.fragment("deepspeed")
    own = engine.values.get("optimizer.name") if engine is not None else None
    if own is not None:
        before = draft.values.get("optimizer.name")
        lost = () if before is None or before.value == own.value else (before,)
        draft.values["optimizer.name"] = own.beside(*(replace(one, note="DeepSpeed builds its own") for one in lost))
    if not draft.has("optimizer.name"):
        fused = release(draft.versions, tf).since("4.54")
        torch = release(draft.versions, "torch").since("2.8")
        if fused is False:
            by_release(draft, "optimizer.name", tf, ("", "adamw_hf"), ("4.32", "adamw_torch"))
        elif fused and torch is not None:
            draft.default("optimizer.name", "adamw_torch_fused" if torch else "adamw_torch", f"{tf} >=4.54")
        elif torch is False:
            draft.default("optimizer.name", "adamw_torch", f"{tf} with torch <2.8")
        else:
            new = "torch >=2.8" if fused else f"{tf} >=4.54 with torch >=2.8"
            draft.either("optimizer.name", ("adamw_torch_fused", new), ("adamw_torch", "before"))
    draft.default("optimizer.lr", 5e-5, tf)
    draft.default("optimizer.weight_decay", 0.0, tf)
    draft.default("optimizer.beta1", 0.9, tf)
    draft.default("optimizer.beta2", 0.999, tf)
    draft.default("optimizer.epsilon", 1e-8, tf)
    draft.default("clip", 1.0, tf)


def regime(draft: Draft, fragment: Fragment, dtype: object = None) -> None:
    """Method, load dtype, engine, mixed precision, adapter: in the order in which each needs the ones before."""
    peft.checkpoint_quantization(draft)
    peft.adapter_method(draft)
    if fragment.facts.get("freezes"):
        draft.derive("method", "freeze", "the script trains a part of the model")
    draft.put("method", "full", "assumed", "no adapter is named")
    precision.load_dtype(draft, dtype)
    peft.adapter_defaults(draft)
    sharding.trainer_fsdp_kind(draft, fragment)
    sharding.fsdp_defaults(draft)
    precision.mixed_precision(draft)
    blocks = [one for one in draft.fragments if one.format == "deepspeed" or one is fragment]
    sharding.deepspeed_auto(draft, *blocks)
    if not draft.has("sharding.kind") and not names_engine(fragment):
        draft.derive("sharding.kind", "none", "no engine is named")


def names_engine(fragment: Fragment) -> bool:
    """Whether the config names a DeepSpeed file, so that an engine runs though it was not read."""
    return any(one.role == "deepspeed" for one in fragment.references)


def count(root: Node | None) -> int:
    """How many of the arguments a mapping has."""
    return len(root.names() & ARGUMENTS) if isinstance(root, Mapping) else 0
