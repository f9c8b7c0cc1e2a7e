"""What Axolotl makes of its config: dtype of weights and embeddings, quantization, packing, the reference model.

Source: axolotl 0.9.2, 0.13.2, 0.19.0, utils/config/__init__.py (resolve_dtype, normalize_config), loaders/model.py
(_configure_embedding_dtypes, _set_quantization_config), core/builders/base.py.
"""

from __future__ import annotations

from trainlint.documents import Mapping
from trainlint.formats.format import Draft
from trainlint.formats.fragment import Fragment
from trainlint.formats.reading import truth
from trainlint.formats.semantics import trainer_arguments as arguments
from trainlint.formats.semantics import trainer_precision as precision
from trainlint.formats.semantics.bundled import shipped_deepspeed
from trainlint.formats.semantics.peft import TARGETS, adapter_dtype, quantized_checkpoint
from trainlint.formats.semantics.release import by_release
from trainlint.formats.semantics.sharding import deepspeed_auto, fsdp_defaults
from trainlint.run import Value

NAME = "axolotl"


def complete(draft: Draft) -> None:
    """Add Axolotl's defaults and what follows from them."""
    own = draft.fragment(NAME)
    assert own is not None, "the run's root is this format's"
    draft.default("framework", NAME, NAME)
    draft.default("objective", "sft", NAME)
    if draft.get("method") is None:
        draft.derive("method", "full", "`adapter` is not set")
    quantized_checkpoint(draft)
    _engine(draft, own)
    _precision(draft, own)
    _adapter(draft, own)
    _batch(draft, own)
    _checkpointing(draft, own)
    draft.default("attention", "sdpa", "the transformers that axolotl needs")
    draft.default("loss", "full", NAME)
    precision.shifted_loss(draft)
    by_release(draft, "optimizer.name", NAME, ("", "adamw_hf"), ("0.8", "adamw_torch_fused"))
    arguments.optimizer_defaults(draft)
    draft.default("zero_grad", "to-none", "transformers")
    draft.default("seed", 42, "transformers")
    draft.default("schedule.name", "cosine", NAME)
    draft.default("schedule.epochs", 1.0, NAME, "epoch")
    draft.default("compile", False, NAME)
    _evaluation(draft, own)
    _reference(draft, own)
    fsdp_defaults(draft)
    deepspeed_auto(draft, *draft.fragments)


def _engine(draft: Draft, own: Fragment) -> None:
    shard, replicate = (own.value(key) for key in ("dp_shard_size", "dp_replicate_size"))
    sizes = [value.value for value in (shard, replicate) if value is not None and isinstance(value.value, int)]
    if sizes:
        product = sizes[0] * (sizes[1] if len(sizes) > 1 else 1)
        draft.derive("parallel.data", product, "`dp_shard_size` and `dp_replicate_size`")
    if own.facts.get("fsdp") or own.facts.get("fsdp_config"):
        draft.default("sharding.kind", "fsdp", "axolotl without `fsdp_version`")
    elif (
        draft.get("sharding.kind") in ("fsdp", "fsdp2")
        and "fsdp_version" in own.keys
        and draft.fragment("accelerate") is None
    ):
        del draft.values["sharding.kind"]  # `fsdp_version` alone shards nothing
    shipped_deepspeed(draft, NAME)
    draft.default("sharding.kind", "none", "neither `deepspeed` nor `fsdp_config` is set")


def _precision(draft: Draft, own: Fragment) -> None:
    """`bf16` and `fp16` decide the weights' dtype too."""
    fp16 = draft.get("precision.fp16") is True
    if draft.get("precision.bf16") is None and not fp16:
        unified = draft.get("device.unified") is True
        draft.derive(
            "precision.bf16", not unified, "`bf16: auto` on a CUDA device" if not unified else "`bf16: auto` off CUDA"
        )
        if unified:
            draft.derive("precision.fp16", True, "`bf16: auto` off CUDA")
    bf16 = draft.get("precision.bf16") is True
    if bf16 or truth(own.written("bfloat16")):
        draft.derive("precision.weights", "bfloat16", "axolotl loads the weights as `bf16` says")
    elif fp16 or truth(own.written("float16")) or truth(own.written("load_in_8bit")):
        draft.derive("precision.weights", "float16", "axolotl loads the weights as `fp16` or `load_in_8bit` says")
    else:
        draft.derive("precision.weights", "float32", "neither `bf16` nor `fp16` is on")
    if own.facts.get("full") and draft.get("sharding.kind") == "none":
        draft.derive("precision.compute", "bfloat16", "`bf16: full`")
        draft.derive("precision.autocast", False, "`bf16: full`")
        draft.derive("precision.grad_scaler", False, "`bf16: full`")
    loaded = draft.get("precision.weights")
    precision.mixed_precision(draft)
    kept = draft.get("attention") in ("flash", "flex") or draft.get("loss") == "cut-ce"
    if draft.get("method") == "full" and draft.get("sharding.kind") == "none" and not kept and loaded != "float32":
        draft.derive(
            "precision.embeddings", "float32", "axolotl keeps embeddings and head in float32 without flash attention"
        )


def _adapter(draft: Draft, own: Fragment) -> None:
    if draft.get("method") not in ("lora", "qlora"):
        return
    draft.default("adapter.kind", "lora", NAME)
    draft.default("adapter.dropout", 0.0, NAME)
    if own.facts.get("pattern") is None and draft.get("adapter.targets") is None:
        _peft_targets(draft)
    if truth(own.written("peft_autocast_adapter_dtype")) is False and draft.get("precision.weights") is not None:
        draft.derive("adapter.dtype", draft.get("precision.weights"), "`peft_autocast_adapter_dtype: false`")
    adapter_dtype(draft)
    bits = draft.get("quantization.bits")
    if bits == 4:
        draft.default("quantization.type", "nf4" if own.written("adapter") == "qlora" else "fp4", NAME)
        draft.default("quantization.double", own.written("adapter") == "qlora", NAME)
        draft.default("quantization.storage", "bfloat16" if own.written("adapter") == "qlora" else "uint8", NAME)
    elif bits == 8:
        draft.default("quantization.type", "int8", NAME)
    if bits in (4, 8):
        if draft.get("model.quantized") is None:
            draft.default("quantization.experts", False, "bitsandbytes quantizes linear layers only")
        draft.derive("quantization.compute", draft.get("precision.weights") or "bfloat16", "axolotl's torch_dtype")
        draft.derive("quantization.prepared", False, "axolotl casts embeddings, head and norms back after preparing")


def _peft_targets(draft: Draft) -> None:
    targets = TARGETS.get(str(draft.get("model.type") or ""))
    if targets is not None:
        draft.default("adapter.targets", targets, "peft")


def _batch(draft: Draft, own: Fragment) -> None:
    draft.default("batch.micro", 1, NAME, "sample")
    micro, total = draft.get("batch.micro"), own.value("batch_size")
    if total is not None and isinstance(total.value, int) and isinstance(micro, int) and micro > 0:
        draft.derive("batch.accumulation", max(1, total.value // micro), "`batch_size` over `micro_batch_size`")
    draft.default("batch.accumulation", 1, NAME)
    draft.default("batch.eval", micro, "axolotl evaluates in batches of `micro_batch_size`", "sample")
    draft.default("length.max", 512, NAME, "token")
    draft.default("length.truncates", False, "axolotl drops longer samples")
    draft.default("length.packing", False, NAME)
    packing = draft.get("length.packing") is True
    draft.default("length.pad_to_max", packing, "axolotl pads to `sequence_len` when it packs")
    whole = packing or (micro == 1 and not draft.get("length.pad_to_max")) or draft.get("length.padding_free") is True
    draft.derive(
        "length.padded", not whole, "packed or single samples need no padding" if whole else "batches are padded"
    )


def _checkpointing(draft: Draft, own: Fragment) -> None:
    draft.default("checkpointing.kind", "none", NAME)
    draft.default("activation_offload", False, NAME)
    if draft.get("checkpointing.kind") != "full":
        return
    bare = own.written("rl") is None and "unfrozen_parameters" not in own.keys
    if bare and "gradient_checkpointing_kwargs" not in own.keys:
        draft.default("checkpointing.reentrant", True, "axolotl without `gradient_checkpointing_kwargs`")
    precision.reentrant(draft)
    replaces = draft.get("activation_offload") is True and own.written("activation_offloading") != "legacy"
    if replaces and draft.get("method") in ("lora", "qlora"):
        written = draft.values["checkpointing.kind"]
        note = "axolotl's offloading takes the place of recomputing with an adapter"
        draft.values["checkpointing.kind"] = Value(
            "none", "derived", written.key, written.place, written.raw, note=note
        )


def _evaluation(draft: Draft, own: Fragment) -> None:
    held = draft.get("data.validation")
    tests = own.entry("test_datasets")
    if (not held or not isinstance(held, int | float)) and (tests is None or own.written("test_datasets") is not None):
        draft.derive("evaluation.strategy", "no", "no `val_set_size` and no `test_datasets`")
        return
    counted = draft.get("evaluation.every") is not None or own.written("evals_per_epoch") is not None
    draft.default("evaluation.strategy", "steps" if counted else "epoch", "axolotl with data held back")
    if draft.get("evaluation.strategy") != "no":
        draft.derive("evaluation.batch", draft.get("batch.eval"), "`eval_batch_size`", "sample")


def _reference(draft: Draft, own: Fragment) -> None:
    """The model is loaded a second time unless an adapter can be switched off."""
    objective = draft.get("objective")
    if objective not in ("dpo", "ipo", "kto", "grpo", "orpo", "simpo"):
        return
    if objective in ("orpo", "simpo"):
        draft.derive("reference", "none", f"{objective} has no reference model")
    elif objective == "grpo":
        block = own.entry("trl")
        beta = own.written("trl.beta") if block is not None and isinstance(block.value, Mapping) else None
        if beta == 0:
            draft.derive("reference", "none", "`trl.beta` 0")
        elif isinstance(beta, int | float):
            draft.derive("reference", "adapter-off" if own.written("adapter") else "copy", "`trl.beta`")
    elif truth(own.written("precompute_ref_log_probs")):
        draft.derive("reference", "precomputed", "`precompute_ref_log_probs`")
    else:
        draft.derive(
            "reference",
            "adapter-off" if own.written("adapter") else "copy",
            "axolotl loads a second model without adapter",
        )
