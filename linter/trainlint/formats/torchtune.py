"""torchtune: recipes whose parts are named by `_component_`, read by OmegaConf.

Source: torchtune 0.6.1, recipes/*.py and torchtune/models/*/_model_builders.py.
"""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node, Scalar
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, say
from trainlint.formats.reading import fragment_of, listed, schema, truth
from trainlint.formats.semantics.interpolation import resolved
from trainlint.run import Value

NAME = "torchtune"

MODULES = {"output_proj": "o_proj"}
"""Where torchtune names a linear layer otherwise than Hugging Face."""
FUSED = {"q_proj": "qkv_proj", "k_proj": "qkv_proj", "v_proj": "qkv_proj", "output_proj": "o_proj"}
"""The layers of models that Hugging Face builds with one matrix for queries, keys and values (Phi-3, Phi-4)."""
MLP = ("gate_proj", "up_proj", "down_proj")
MLP_FUSED = ("gate_up_proj", "down_proj")

OPTIMIZERS = {
    "torch.optim.Adam": "adamw_torch",
    "torch.optim.AdamW": "adamw_torch",
    "torch.optim.SGD": "sgd",
    "torch.optim.Adafactor": "adafactor",
    "bitsandbytes.optim.AdamW": "adamw_bnb_32bit",
    "bitsandbytes.optim.AdamW8bit": "adamw_bnb_8bit",
    "bitsandbytes.optim.PagedAdamW": "paged_adamw_32bit",
    "bitsandbytes.optim.PagedAdamW32bit": "paged_adamw_32bit",
    "bitsandbytes.optim.PagedAdamW8bit": "paged_adamw_8bit",
    "bitsandbytes.optim.Lion8bit": "lion_8bit",
    "bitsandbytes.optim.PagedLion8bit": "paged_lion_8bit",
    "torchao.prototype.low_bit_optim.AdamW8bit": "ao_adamw_8bit",
    "torchao.prototype.low_bit_optim.AdamW4bit": "ao_adamw_4bit",
    "torchao.prototype.low_bit_optim.AdamWFp8": "ao_adamw_fp8",
    "torchao.optim.AdamW8bit": "ao_adamw_8bit",
    "torchao.optim.AdamW4bit": "ao_adamw_4bit",
    "torchao.optim.AdamWFp8": "ao_adamw_fp8",
}
CHUNKED = ("CEWithChunkedOutputLoss", "LinearCrossEntropyLoss", "ForwardKLWithChunkedOutputLoss")
"""Losses that never build the logits of a whole batch."""
OBJECTIVES = (
    ("DPO", "dpo"),
    ("RSO", "dpo"),
    ("SimPO", "simpo"),
    ("GRPO", "grpo"),
    ("PPO", "ppo"),
    ("KL", "distillation"),
)
"""What the name of the loss says of the objective."""
DISTRIBUTED = ("fsdp_cpu_offload", "fsdp_reshard_after_forward", "custom_sharded_layers", "tensor_parallel_plan")
"""Keys that only the distributed recipes read."""


def recognise(document: Document, root: Node | None) -> int:
    """A mapping with a part that names its `_component_`."""
    if not isinstance(root, Mapping):
        return 0
    parts = [entry.value for entry in root.entries if isinstance(entry.value, Mapping)]
    if not any("_component_" in part for part in parts):
        return 0
    model = root.get("model")
    return 95 if "checkpointer" in root or (isinstance(model, Mapping) and "_component_" in model) else 60


def read(document: Document, root: Node | None) -> Fragment:
    """What the recipe's config says. One without an optimizer evaluates, generates or quantizes: no run starts."""
    assert isinstance(root, Mapping)
    tree = resolved(root) if "${" in document.text else root
    fragment = fragment_of(NAME, document, tree, framework="torchtune", launches="optimizer" in tree)
    _model(fragment)
    _optimizer(fragment)
    loss = fragment.entry("loss._component_")
    if loss is not None and isinstance(loss.value, Scalar):
        name = str(loss.value.value).rpartition(".")[2]
        fragment.values["loss"] = say(
            NAME, "loss._component_", loss.value, "torchtune-chunked" if name in CHUNKED else "full"
        )
        for part, objective in OBJECTIVES:
            if part in name:
                fragment.values["objective"] = say(NAME, "loss._component_", loss.value, objective)
                break
    return fragment


def _model(fragment: Fragment) -> None:
    entry = fragment.entry("model._component_")
    if entry is None or not isinstance(entry.value, Scalar) or not isinstance(entry.value.value, str):
        return
    node, put = entry.value, fragment.values
    builder = entry.value.value.rpartition(".")[2]
    plain = builder.removeprefix("q").removeprefix("lora_") if builder.startswith(("lora_", "qlora_")) else builder
    known = schema(NAME)["x-builders"]["models"]
    shape = known.get(plain) or known.get(plain.removesuffix("_base").removesuffix("_instruct"))
    if shape is not None:
        put["model.id"] = say(NAME, "model._component_", node, shape)
    if any(
        fragment.written(f"model.{part}_trainable") in ("frozen", False) for part in ("decoder", "encoder", "fusion")
    ):
        put["method"] = say(NAME, "model._component_", node, "freeze")
    elif builder == plain:
        put["method"] = say(NAME, "model._component_", node, "full")
    else:
        quantized = builder.startswith("qlora_") or truth(fragment.written("model.quantize_base")) is True
        put["method"] = say(NAME, "model._component_", node, "qlora" if quantized else "lora")
        put["adapter.kind"] = say(
            NAME, "model._component_", node, "dora" if truth(fragment.written("model.use_dora")) else "lora"
        )
        if quantized:
            put["quantization.bits"] = say(NAME, "model._component_", node, 4)
        _targets(fragment, plain.startswith("phi"))


def _targets(fragment: Fragment, fused: bool) -> None:
    entry = fragment.entry("model.lora_attn_modules")
    names = listed(entry.value) if entry is not None else None
    if entry is None or names is None:
        return
    table = FUSED if fused else MODULES
    found = [table.get(name, name) for name in names]
    if truth(fragment.written("model.apply_lora_to_mlp")):
        found += MLP_FUSED if fused else MLP
    if truth(fragment.written("model.apply_lora_to_output")):
        found.append("lm_head")
    fragment.values["adapter.targets"] = Value(
        tuple(dict.fromkeys(found)), "written", "model.lora_attn_modules", entry.value.place, file_format=NAME
    )


def _optimizer(fragment: Fragment) -> None:
    entry = fragment.entry("optimizer._component_")
    if entry is None or not isinstance(entry.value, Scalar):
        return
    name = OPTIMIZERS.get(str(entry.value.value))
    if name == "adamw_torch" and truth(fragment.written("optimizer.fused")):
        name = "adamw_torch_fused"
    if name is not None:
        fragment.values["optimizer.name"] = say(NAME, "optimizer._component_", entry.value, name)


def complete(draft: Draft) -> None:
    """One dtype for weights, gradients, states and compute; no autocast, no master copy; FSDP2 where distributed."""
    draft.default("framework", "torchtune", "torchtune")
    draft.default("objective", "sft", "the loss is a cross-entropy")
    dtype = draft.get("precision.weights")
    if dtype is not None:
        draft.derive("precision.compute", dtype, "torchtune trains in `dtype`, without autocast")
    draft.derive("precision.autocast", False, "torchtune trains in `dtype`, without autocast")
    draft.derive("precision.grad_scaler", False, "torchtune never scales the loss")
    if draft.get("method") in ("lora", "qlora"):
        draft.default("adapter.rank", 8, "torchtune's lora builders")
        draft.default("adapter.alpha", 16.0, "torchtune's lora builders")
        if dtype is not None:
            draft.derive("adapter.dtype", dtype, "torchtune makes adapters in `dtype`")
    if draft.get("method") == "qlora":
        draft.derive("quantization.type", "nf4", "torchao's NF4 tensors")
        draft.derive("quantization.double", True, "torchao's NF4 tensors")
        draft.derive("quantization.prepared", False, "torchtune leaves in `dtype` what is not quantized")
        if dtype is not None:
            draft.derive("quantization.compute", dtype, "NF4 weights are expanded to `dtype`")
    draft.default("batch.accumulation", 1, "torchtune")
    draft.default("length.packing", False, "torchtune's datasets")
    draft.derive("length.padded", False, "torchtune's attention is causal and carries no padding mask")
    draft.default("checkpointing.kind", "none", "torchtune")
    draft.derive("checkpointing.reentrant", False, "torchtune wraps blocks with the non-reentrant checkpoint")
    draft.default("activation_offload", False, "torchtune")
    draft.default("attention", "sdpa", "torchtune")
    draft.default("compile", False, "torchtune")
    draft.default("clip", 0.0, "torchtune does not clip unless `clip_grad_norm` is set")
    draft.default("optimizer.in_backward", False, "torchtune")
    own = draft.fragment(NAME)
    if own is not None and own.written("run_val_every_n_steps") is None:
        draft.default("evaluation.strategy", "no", "torchtune validates when `run_val_every_n_steps` is set")
    _reference(draft)
    _sharding(draft)


def _reference(draft: Draft) -> None:
    if draft.get("objective") == "dpo":
        adapted = draft.get("method") in ("lora", "qlora")
        draft.derive("reference", "adapter-off" if adapted else "copy", "torchtune's DPO recipes")
    elif draft.get("objective") == "grpo":
        draft.derive("reference", "copy", "torchtune's GRPO recipe")


def _sharding(draft: Draft) -> None:
    world = draft.get("parallel.world") or draft.get("device.count")
    own = draft.fragment(NAME)
    written = set(DISTRIBUTED) & own.keys.keys() if own is not None else set()
    if draft.get("sharding.offload_parameters") == "cpu":
        draft.derive("sharding.offload_optimizer", "cpu", "`fsdp_cpu_offload` moves parameters, gradients and states")
    if isinstance(world, int):
        draft.derive("sharding.kind", "fsdp2" if world > 1 else "none", "the distributed recipes shard with FSDP2")
        tensor, context = draft.get("parallel.tensor"), draft.get("parallel.context")
        split = (tensor if isinstance(tensor, int) else 1) * (context if isinstance(context, int) else 1)
        if split > 0 and world % split == 0:
            draft.derive("parallel.data", world // split, "the devices over the other degrees")
    elif written:
        draft.derive("sharding.kind", "fsdp2", f"`{min(written)}` is read by the distributed recipes")
    else:
        draft.either(
            "sharding.kind", ("none", "a single-device recipe"), ("fsdp2", "a distributed recipe"), origin="derived"
        )
    if draft.get("sharding.kind") == "fsdp2":
        draft.default("sharding.reshard_after_forward", True, "torchtune")
        draft.derive("sharding.wrap", "block", "torchtune")


FORMAT = Format(
    name=NAME,
    title="torchtune recipe",
    recognise=recognise,
    read=read,
    complete=complete,
    framework="torchtune",
    package="torchtune",
)
