"""ms-swift: arguments of `swift sft`, `pt` and `rlhf` and of `megatron sft` in YAML or JSON.

Its loader turns every value into a word of the command line, so `1e-4` and `'true'` mean what they say.

Source: ms-swift 2.0-4.6, arguments/base_args/*.py, arguments/{train,tuner,rlhf}_args.py,
megatron/argument/megatron_args.py, config/zero*.json.
"""

from __future__ import annotations

import re

from trainlint.documents import Document, Mapping, Node, Scalar
from trainlint.formats import deepspeed
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, Reference, say
from trainlint.formats.reading import fragment_of, listed, truth
from trainlint.formats.semantics import degrees, megatron, peft, sharding
from trainlint.formats.semantics import trainer_arguments as arguments
from trainlint.formats.semantics import trainer_precision as precision
from trainlint.run import Value

NAME = "ms-swift"
TUNERS = frozenset(("tuner_type", "train_type", "sft_type", "rlhf_type", "tuner_backend"))
OWN = frozenset(
    (
        "attn_impl", "split_dataset_ratio", "lora_rank", "target_modules", "max_length", "truncation_strategy",
        "quant_method", "quant_bits", "dataset_num_proc", "model_author", "model_name", "use_hf", "agent_template",
        "loss_scale", "freeze_vit", "freeze_aligner", "use_ray", "device_groups", "system", "load_from_cache_file",
        "external_plugins", "reward_funcs", "vllm_mode", "ENV", "custom_dataset", "val_dataset", "acc_strategy",
    )
)  # fmt: skip
TRAINS = frozenset(
    (
        "per_device_train_batch_size", "num_train_epochs", "learning_rate", "gradient_accumulation_steps",
        "train_iters", "micro_batch_size", "global_batch_size", "lr", "max_epochs",
    )
)  # fmt: skip
MEGATRON = frozenset(
    (
        "tensor_model_parallel_size", "pipeline_model_parallel_size", "expert_model_parallel_size", "micro_batch_size",
        "recompute_granularity", "global_batch_size", "train_iters", "context_parallel_size", "no_save_rng",
        "cross_entropy_loss_fusion", "no_save_optim", "mcore_model",
    )
)  # fmt: skip
WORDS = {"all": "all-linear", "ALL": "all-linear"}
_ZERO = r"zero([0123])(_offload)?"


def recognise(document: Document, root: Node | None) -> int:
    """A model and data with a tuner's or an RLHF method's key, or with several arguments of ms-swift's alone."""
    if not isinstance(root, Mapping):
        return 0
    names = root.names()
    if _fsdp_file(root):
        return 85
    inner = root.get("train")
    if isinstance(inner, Mapping) and "model" in names:
        names |= inner.names()
    named = isinstance(root.get("model"), Scalar) or "model_type" in names or "model_id_or_path" in names
    if not named or not names & {"dataset", "cached_dataset"} or "sampler_engine" in names:
        return 0
    if names & TUNERS and (names & TRAINS or names & OWN):
        return 95
    return 70 if names & TRAINS and len(names & OWN) >= 3 else 0


def _fsdp_file(root: Mapping) -> bool:
    """What `--fsdp x.json` names: the two arguments of the Trainer, and remarks."""
    named = {name for name in root.names() if not name.startswith("_")}
    return named == {"fsdp", "fsdp_config"} and isinstance(root.get("fsdp_config"), Mapping)


def read(document: Document, root: Node | None) -> Fragment:
    """The arguments; those that a Ray job keeps under `train` belong to them."""
    assert isinstance(root, Mapping)
    if _fsdp_file(root):
        fragment = Fragment(NAME, document, root, framework=NAME)
        sharding.trainer_fsdp(fragment)
        block = root.get("fsdp_config")
        if isinstance(block, Mapping):
            sharding.fsdp_block(fragment, block, "fsdp_config.")
        return fragment
    tree = _flat(root)
    fragment = fragment_of(NAME, document, tree, framework=NAME, launches=True)
    interpret(fragment)
    return fragment


def _flat(root: Mapping) -> Mapping:
    inner = root.get("train")
    if not isinstance(inner, Mapping):
        return root
    entries = tuple(entry for entry in root.entries if entry.name not in ("train", "rollout"))
    return Mapping((*entries, *inner.entries), root.place)


def interpret(fragment: Fragment) -> None:
    """What the schema's marks can not say: tuners, DeepSpeed by name, the objective, quantization."""
    values, names = fragment.values, fragment.root.names() if fragment.root is not None else frozenset()
    fragment.facts["megatron"] = bool(names & MEGATRON)
    degrees.positive(values)
    steps = values.get("schedule.max_steps")
    if steps is not None and isinstance(steps.value, int) and steps.value < 1:
        del values["schedule.max_steps"]
    for key in ("tuner_type", "train_type", "sft_type"):
        entry = fragment.entry(key)
        if entry is None or not isinstance(entry.value, Scalar):
            continue
        word = str(entry.value.value)
        quantized = "quantization.bits" in values
        if word == "full":
            values["method"] = say(NAME, key, entry.value, "full")
        elif word in ("lora", "longlora", "adalora", "vera"):
            values["method"] = say(NAME, key, entry.value, "qlora" if quantized else "lora")
            values.setdefault("adapter.kind", say(NAME, key, entry.value, word))
        fragment.facts["tuner"] = word
        break
    if fragment.facts.get("tuner") not in (None, "lora", "longlora", "adalora", "vera"):
        for path in [path for path in values if path.startswith("adapter.")]:
            del values[path]
    method = fragment.value("quant_method")
    if method is not None and str(method.value) not in ("bnb", "None") and "quantization.bits" in values:
        values["quantization.type"] = method
    targets = fragment.entry("target_modules")
    chosen = listed(targets.value) if targets is not None else None
    if chosen and targets is not None and "adapter.targets" in values:
        values["adapter.targets"] = Value(
            tuple(WORDS.get(name, name) for name in chosen),
            "written",
            "target_modules",
            targets.value.place,
            file_format=NAME,
        )
    objective = fragment.entry("rlhf_type")
    if objective is not None and isinstance(objective.value, Scalar) and isinstance(objective.value.value, str):
        word = objective.value.value.lower()
        values["objective"] = say(NAME, "rlhf_type", objective.value, "reward" if word == "rm" else word)
    _deepspeed(fragment)


def _deepspeed(fragment: Fragment) -> None:
    """`zero2` is a config that ms-swift brings along, anything else a file, or the config itself."""
    entry = fragment.entry("deepspeed")
    if entry is None:
        return
    if isinstance(entry.value, Mapping):
        deepspeed.read_block(fragment, entry.value, "deepspeed")
        return
    if not isinstance(entry.value, Scalar) or not isinstance(entry.value.value, str):
        return
    found = re.fullmatch(_ZERO, entry.value.value)
    if found is None:
        fragment.references.append(Reference("deepspeed", entry.value.value, entry.value.place, "deepspeed"))
        return
    fragment.values["sharding.kind"] = say(NAME, "deepspeed", entry.value, f"zero{found[1]}")
    fragment.facts["zero"] = found[1]
    if found[2]:
        fragment.values["sharding.offload_optimizer"] = say(NAME, "deepspeed", entry.value, "cpu")
    if found[2] and found[1] == "3":
        fragment.values["sharding.offload_parameters"] = say(NAME, "deepspeed", entry.value, "cpu")


def complete(draft: Draft) -> None:
    """The defaults of ms-swift, by its Trainer or by Megatron."""
    fragment = draft.fragments[0]
    draft.default("framework", NAME, NAME)
    draft.default("objective", "sft", NAME)
    peft.quantized_checkpoint(draft)
    quantized = draft.get("quantization.bits") is not None
    draft.default("method", "qlora" if quantized else "lora", NAME)
    if fragment.facts.get("tuner") not in (None, "full", "lora", "longlora", "adalora", "vera"):
        draft.values.pop("method", None)
    if draft.get("method") in ("lora", "qlora"):
        draft.default("adapter.targets", ("all-linear",), NAME)
    if fragment.facts.get("megatron"):
        _megatron(draft, fragment)
        return
    draft.default("batch.micro", 1, NAME, "sample")
    draft.default("batch.eval", 1, NAME, "sample")
    world = degrees.data_parallel(draft, "the processes")
    micro = degrees.whole(draft, "batch.micro")
    if not draft.has("batch.accumulation") and world is not None and micro is not None:
        draft.default("batch.accumulation", -(-16 // (micro * world)), "ms-swift makes 16 samples a step")
    _regime(draft, fragment)
    draft.default("checkpointing.kind", "full", NAME)
    precision.reentrant(draft)
    precision.attention(draft)
    draft.default("kernels", "none", NAME)
    draft.default("loss", "liger" if draft.get("kernels") == "liger" else "full", NAME)
    draft.default("length.packing", False, NAME)
    draft.default("length.padding_free", False, NAME)
    together = draft.get("length.packing") or draft.get("length.padding_free") or micro == 1
    draft.derive("length.padded", not together, "the collator")
    draft.default("optimizer.weight_decay", 0.1, NAME)
    draft.default("optimizer.beta2", 0.95, NAME)
    draft.default("schedule.name", "cosine", NAME)
    arguments.optimizer_defaults(draft)
    draft.default("activation_offload", False, NAME)
    if draft.get("objective") in ("dpo", "kto", "ppo"):
        adapted = draft.get("method") in ("lora", "qlora")
        draft.derive("reference", "adapter-off" if adapted else "copy", "ms-swift's reference model")


def _regime(draft: Draft, fragment: Fragment) -> None:
    """Weights in `torch_dtype`, else the checkpoint's; float32 and float16 both run under float16 autocast."""
    if not draft.has("precision.weights"):
        note = "ms-swift loads in the checkpoint's dtype"
        draft.either("precision.weights", *precision.checkpoint_dtype(draft, note), origin="derived")
    weights = draft.get("precision.weights")
    if weights is not None and fragment.written("bf16") is None and fragment.written("fp16") is None:
        draft.derive("precision.bf16", weights == "bfloat16", "ms-swift follows `torch_dtype`")
        draft.derive("precision.fp16", weights != "bfloat16", "ms-swift follows `torch_dtype`")
    peft.adapter_defaults(draft, 8, 32, 0.05, NAME)
    peft.quantization_defaults(draft, "nf4", True, NAME)
    if draft.has("quantization.bits") and weights is not None:
        draft.default("quantization.compute", weights, NAME)
    if not draft.has("sharding.kind") and not arguments.names_engine(fragment):
        one = draft.get("parallel.world") is None and draft.get("parallel.per_node") is None
        if one and draft.get("device.count") not in (None, 1):
            draft.derive("sharding.kind", "device-map", "one process splits the layers over the devices it sees")
        elif not one or draft.get("device.count") == 1:
            draft.derive("sharding.kind", "none", "no engine is named")
    if fragment.facts.get("zero"):
        draft.default("sharding.overlap_comm", False, "ms-swift's zero config")
        size = 200_000_000.0 if fragment.facts["zero"] != "3" else None
        if size is not None:
            draft.default("sharding.reduce_bucket", size, "ms-swift's zero config", "element")
            draft.default("sharding.allgather_bucket", size, "ms-swift's zero config", "element")
        hidden = draft.get("model.shape.hidden")
        if size is None and isinstance(hidden, int):
            draft.derive("sharding.reduce_bucket", float(hidden * hidden), "ms-swift's zero3: `auto`", "element")
            draft.derive(
                "sharding.prefetch_bucket", float(int(0.9 * hidden * hidden)), "ms-swift's zero3: `auto`", "element"
            )
    precision.mixed_precision(draft)
    sharding.deepspeed_auto(draft, *draft.fragments)


def _megatron(draft: Draft, fragment: Fragment) -> None:
    draft.default("batch.micro", 1, NAME, "sample")
    draft.default("batch.effective", 16, NAME, "sample")
    megatron.shared(draft, NAME)
    weights = draft.get("precision.weights") or draft.get("model.dtype") or "bfloat16"
    draft.values.pop("precision.weights", None)
    if truth(fragment.written("use_distributed_optimizer")) is False:
        megatron.states(draft, str(weights), False, "Megatron in ms-swift")
    else:
        megatron.states(draft, str(weights), True, "Megatron in ms-swift")
    draft.default("clip", 1.0, NAME)
    draft.default("optimizer.name", "adamw_torch_fused", NAME)
    draft.default("attention", "flash", NAME)
    if draft.get("method") in ("lora", "qlora"):
        draft.default("adapter.rank", 8, NAME)


FORMAT = Format(NAME, "ms-swift arguments", recognise, read, complete, NAME, NAME)
