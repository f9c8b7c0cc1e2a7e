"""What LLaMA-Factory makes of its config: what trains goes to float32, checkpointing is on, one process a device.

Source: LLaMA-Factory 0.8.3, 0.9.3, 0.9.5, model/adapter.py, model/patcher.py, model/loader.py,
model_utils/{checkpointing,liger_kernel,quantization}.py, hparams/parser.py.
"""

from __future__ import annotations

from trainlint.formats.format import Draft
from trainlint.formats.fragment import Fragment
from trainlint.formats.reading import truth
from trainlint.formats.semantics import trainer_arguments as arguments
from trainlint.formats.semantics import trainer_precision as precision
from trainlint.formats.semantics.bundled import shipped_deepspeed
from trainlint.formats.semantics.peft import adapter_dtype, quantized_checkpoint
from trainlint.formats.semantics.release import by_release
from trainlint.formats.semantics.sharding import deepspeed_auto, fsdp_defaults, trainer_fsdp_kind

NAME = "llamafactory"
TRAINER = (("zero_grad", "to-none"), ("seed", 42), ("schedule.name", "linear"), ("checkpoint.strategy", "steps"))
MEGATRON = frozenset(
    (
        "expert_model_parallel_size", "overlap_grad_reduce", "overlap_param_gather", "pipeline_model_parallel_size",
        "recompute_granularity", "tensor_model_parallel_size", "use_distributed_optimizer", "use_mca",
    )
)  # fmt: skip
"""Keys of the Megatron trainers, which hold and shard the states in their own way."""


def complete(draft: Draft) -> None:
    """Add LLaMA-Factory's defaults and what follows from them."""
    own = draft.fragment(NAME)
    assert own is not None, "the run's root is this format's"
    draft.default("framework", NAME, NAME)
    v1 = "train_dataset" in own.keys
    draft.default("objective", "sft", NAME)
    if draft.get("method") is None:
        quantized = draft.get("quantization.bits") is not None
        draft.default("method", "full" if v1 else "qlora" if quantized else "lora", NAME)
    quantized_checkpoint(draft)
    _engine(draft, own)
    if v1:
        _second_layout(draft)
    else:
        _precision(draft, own)
        _batch(draft)
    _adapter(draft)
    _checkpointing(draft, v1)
    _attention_and_loss(draft)
    arguments.optimizer_defaults(draft)
    for path, value in TRAINER:
        draft.default(path, value, "transformers")
    _evaluation(draft)
    _reference(draft)
    fsdp_defaults(draft)
    deepspeed_auto(draft, *draft.fragments)


def _engine(draft: Draft, own: Fragment) -> None:
    trainer_fsdp_kind(draft, own)
    shipped_deepspeed(draft, NAME)
    if own.keys.keys() & MEGATRON:
        note = "Megatron shards by its own rules"
        draft.either("sharding.kind", ("none", note), ("zero1", note), ("zero3", note), origin="derived")
    elif truth(own.written("use_kt")):
        note = "KTransformers keeps the experts on the host"
        draft.derive("sharding.offload_parameters", "cpu", note)
        draft.either("sharding.kind", ("none", note), ("zero3", note), origin="derived")
    draft.default("sharding.kind", "none", "neither `deepspeed` nor `fsdp` is set")


def _precision(draft: Draft, own: Fragment) -> None:
    """The compute dtype loads the model, then every parameter that trains is lifted to float32, unless `pure_bf16`."""
    pure = truth(own.written("pure_bf16")) is True or truth(own.written("use_badam")) is True
    half, _ = precision.half_precision(draft)
    if half is None and truth(own.written("pure_bf16")):
        half = "bfloat16"
    adapted = draft.get("method") in ("lora", "qlora")
    if draft.get("method") == "full" and not pure:
        draft.derive("precision.weights", "float32", "LLaMA-Factory lifts what trains to float32 without `pure_bf16`")
    elif half is not None:
        stored = draft.get("model.dtype")
        if isinstance(stored, str) and stored != half and not draft.get("quantization.bits"):
            draft.either(
                "precision.weights", (half, "llamafactory <0.9.4"), (stored, "llamafactory >=0.9.4"), origin="derived"
            )
        else:
            draft.derive("precision.weights", half, "LLaMA-Factory loads the model in the compute dtype")
    else:
        draft.either("precision.weights", *precision.checkpoint_dtype(draft, "no `bf16` or `fp16`"), origin="derived")
    if adapted:
        held = "bfloat16" if pure and half == "bfloat16" else "float32"
        draft.derive("adapter.dtype", held, "`pure_bf16`" if pure else "LLaMA-Factory lifts what trains to float32")
    precision.mixed_precision(draft)


def _second_layout(draft: Draft) -> None:
    """The layout with `train_dataset`: float32 weights where all train, FSDP2 computing in bfloat16."""
    draft.default("batch.micro", 1, NAME, "sample")
    if draft.get("method") == "full":
        draft.derive("precision.weights", "float32", "LLaMA-Factory v1 trains float32 weights")
    else:
        note = "LLaMA-Factory v1 loads in the checkpoint's dtype"
        draft.either("precision.weights", *precision.checkpoint_dtype(draft, note), origin="derived")
        adapter_dtype(draft)
    if draft.get("batch.effective") is None:
        draft.default("batch.accumulation", 1, "LLaMA-Factory v1 without `global_batch_size`")
    if draft.get("sharding.kind") == "fsdp2":
        draft.default("precision.compute", "bfloat16", "LLaMA-Factory v1 computes in bfloat16 under FSDP2")
        draft.default("precision.autocast", False, "FSDP2's mixed precision policy casts the shards")
        draft.default("sharding.reduce_dtype", "float32", "LLaMA-Factory v1")


def _batch(draft: Draft) -> None:
    arguments.batch_defaults(draft)
    by_release(draft, "length.max", NAME, ("", 1024), ("0.9.1", 2048), unit="token")
    draft.default("length.truncates", True, NAME)
    pretrain = draft.get("objective") == "pretrain"
    draft.default("length.packing", pretrain, "LLaMA-Factory packs in stage pt")
    packing = draft.get("length.packing") is True
    whole = packing or draft.get("batch.micro") == 1
    draft.derive(
        "length.padded", not whole, "packed or single samples need no padding" if whole else "batches are padded"
    )


def _adapter(draft: Draft) -> None:
    if draft.get("method") == "freeze":
        draft.default("adapter.layers", 2, "LLaMA-Factory's `freeze_trainable_layers`")
    if draft.get("method") not in ("lora", "qlora"):
        return
    draft.default("adapter.kind", "lora", NAME)
    draft.default("adapter.rank", 8, NAME)
    rank = draft.get("adapter.rank")
    if isinstance(rank, int):
        draft.default("adapter.alpha", 2.0 * rank, "LLaMA-Factory takes twice the rank")
    draft.default("adapter.dropout", 0.0, NAME)
    draft.default("adapter.targets", ("all-linear",), NAME)
    bits = draft.get("quantization.bits")
    if bits == 4:
        draft.default("quantization.type", "nf4", NAME)
        draft.default("quantization.double", True, NAME)
        draft.default("quantization.experts", False, "bitsandbytes quantizes linear layers only")
    elif bits == 8:
        draft.default("quantization.type", "int8", NAME)
    if bits in (4, 8):
        compute = draft.get("precision.compute")
        if compute is not None:
            draft.derive("quantization.compute", compute, "LLaMA-Factory's compute dtype")
            draft.derive("quantization.storage", compute, "LLaMA-Factory's compute dtype")
        draft.derive("quantization.prepared", False, "LLaMA-Factory prepares quantized models in its own way")


def _checkpointing(draft: Draft, v1: bool) -> None:
    draft.default("checkpointing.kind", "full", "LLaMA-Factory, unless `disable_gradient_checkpointing`")
    if v1 or draft.get("sharding.kind") == "fsdp2":
        draft.derive("checkpointing.reentrant", False, "LLaMA-Factory with FSDP2")
    draft.default("checkpointing.reentrant", True, "LLaMA-Factory's `use_reentrant_gc`")
    draft.default("activation_offload", False, NAME)


def _attention_and_loss(draft: Draft) -> None:
    """Liger's fused loss runs where no stage needs the logits."""
    draft.default("attention", "sdpa", "the transformers that LLaMA-Factory needs")
    fused = draft.get("kernels") == "liger" and draft.get("objective") in ("sft", "pretrain")
    draft.derive("loss", "liger" if fused else "full", "`enable_liger_kernel` in stages pt and sft" if fused else NAME)
    precision.shifted_loss(draft)


def _evaluation(draft: Draft) -> None:
    own = draft.fragment(NAME)
    if own is not None and own.written("eval_dataset") is None and not draft.get("data.validation"):
        draft.derive("evaluation.strategy", "no", "no `val_size` and no `eval_dataset`")
    draft.default("evaluation.strategy", "no", "transformers")
    if draft.get("evaluation.strategy") != "no" and draft.get("batch.eval") is not None:
        draft.derive("evaluation.batch", draft.get("batch.eval"), "`per_device_eval_batch_size`", "sample")


def _reference(draft: Draft) -> None:
    objective = draft.get("objective")
    if objective in ("orpo", "simpo"):
        draft.derive("reference", "none", f"{objective} has no reference model")
    elif objective in ("dpo", "ipo", "kto", "ppo"):
        adapted = draft.get("method") in ("lora", "qlora")
        draft.derive("reference", "adapter-off" if adapted else "copy", "LLaMA-Factory loads a second model for `full`")
