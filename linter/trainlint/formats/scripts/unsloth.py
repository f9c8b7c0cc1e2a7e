"""Unsloth in scripts: what `FastModel.from_pretrained` and `get_peft_model` do where their keywords are silent.

Source: unsloth 2024.11-2026.10 models/{loader,llama,vision}.py, unsloth_zoo gradient_checkpointing.py, fused_losses/,
training_utils.py.
"""

from __future__ import annotations

from trainlint.documents import Scalar
from trainlint.formats.format import Draft
from trainlint.formats.scripts.calls import Call
from trainlint.formats.scripts.setup import Setup

NAME = "unsloth"
LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
_OTHER_LOADS = frozenset(("load_in_4bit", "load_in_8bit", "load_in_16bit", "load_in_fp8", "full_finetuning"))
_CHECKPOINTING = "use_gradient_checkpointing"


def loads(draft: Draft, made: Setup) -> bool:
    """Whether Unsloth loads the model or makes the adapter."""
    return draft.get("kernels") == NAME and bool(made.loads or made.unsloth)


def defaults(draft: Draft, made: Setup) -> None:
    """4 bits, seven linear layers of rank 16, checkpoints that move to the host, a loss that builds no logits."""
    load = made.loads[0] if made.loads else None
    if load is not None:
        if not load.sources.keys() & _OTHER_LOADS:
            draft.default("quantization.bits", 4, NAME)
        draft.default("length.max", 2048, NAME, "token")
        draft.default("precision.weights", "bfloat16", "unsloth, where the device has it")
    if made.unsloth:
        vision = any("Language" not in call.receiver and "Llama" not in call.receiver for call in made.unsloth)
        draft.default("adapter.rank", 16, NAME)
        draft.default("adapter.alpha", 16.0, NAME)
        draft.default("adapter.dropout", 0.0, NAME)
        draft.default("adapter.targets", ("all-linear",) if vision else LINEAR, NAME)
        draft.derive("adapter.dtype", "float32", "unsloth makes adapters in float32")
    calls = made.unsloth or made.loads
    if calls and _CHECKPOINTING not in calls[0].unknown:
        draft.default("checkpointing.kind", "full", NAME)
        if draft.get("checkpointing.kind") == "full":
            offloads = _offloads(calls[0])
            draft.derive("activation_offload", offloads, f"`{_CHECKPOINTING}`")
            draft.derive("checkpointing.reentrant", True, "unsloth's own checkpoint function")
    if draft.get("precision.weights") == "bfloat16" and not draft.has("precision.fp16"):
        draft.default("precision.bf16", True, "unsloth follows the model's dtype")
    if draft.fragments[0].facts.get("objective") in (None, "sft"):
        draft.derive("loss", NAME, "unsloth computes the loss in chunks")


def _offloads(call: Call) -> bool:
    node = call.keywords.get(_CHECKPOINTING)
    return node is None or (isinstance(node, Scalar) and node.value == NAME)
