"""Adapters by PEFT and the quantized base under them: defaults that a config leaves to the library.

Sources: PEFT 0.11.1, 0.12.0, 0.21.2 (tuners/lora, tuners_utils.py, utils/constants.py); transformers 5.24
BitsAndBytesConfig.
"""

from __future__ import annotations

from dataclasses import replace

from trainlint.formats.format import Draft
from trainlint.formats.semantics.release import by_release

TARGETS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            "llama", "llama4", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "gemma", "gemma2",
            "gemma3_text", "cohere", "stablelm", "opt", "gptj", "gpt_neo", "olmo", "olmo2", "starcoder2", "bart",
        ),
        ("q_proj", "v_proj"),
    ),
    "phi": ("q_proj", "v_proj", "fc1", "fc2"),
    "phi3": ("qkv_proj",),
    "gpt2": ("c_attn",),
    "gpt_bigcode": ("c_attn",),
    "gpt_neox": ("query_key_value",),
    "bloom": ("query_key_value",),
    "falcon": ("query_key_value",),
    "chatglm": ("query_key_value",),
    "bert": ("query", "value"),
    "roberta": ("query", "value"),
    "xlm-roberta": ("query", "value"),
    "electra": ("query", "value"),
    "deberta": ("in_proj",),
    "deberta-v2": ("query_proj", "value_proj"),
    "t5": ("q", "v"),
    "mt5": ("q", "v"),
    "mpt": ("Wqkv",),
    "dbrx": ("Wqkv",),
}  # fmt: skip
"""Modules that PEFT adapts when `target_modules` is absent, by model type
(TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING)."""


def adapter_method(draft: Draft) -> None:
    """`method` lora or qlora where an adapter is known, by whether its base is quantized."""
    if draft.has("method"):
        return
    if draft.get("adapter.kind") is not None or draft.get("adapter.rank") is not None:
        quantized = draft.get("quantization.bits") is not None
        draft.derive("method", "qlora" if quantized else "lora", "an adapter is trained")


def adapter_defaults(draft: Draft, rank: int = 8, alpha: float = 8, dropout: float = 0.0, owner: str = "peft") -> None:
    """Rank, alpha, dropout, targets and dtype of a LoRA adapter that the files leave open.

    `rank`, `alpha`, `dropout`: defaults of the framework that builds the LoraConfig, `owner` its name.
    """
    if draft.get("method") not in ("lora", "qlora"):
        return
    draft.default("adapter.kind", "lora", owner)
    draft.default("adapter.rank", rank, owner)
    draft.default("adapter.alpha", float(alpha), owner)
    draft.default("adapter.dropout", dropout, owner)
    draft.default("adapter.bias", "none", owner)
    targets = TARGETS.get(str(draft.get("model.type") or ""))
    if targets is not None:
        draft.default("adapter.targets", targets, "peft")
    adapter_dtype(draft)


def adapter_dtype(draft: Draft) -> None:
    """dtype of the adapter's weights: float32 since PEFT 0.12 and on a quantized base, before that the base's dtype."""
    base = draft.get("precision.weights")
    if draft.get("quantization.bits") is not None or base is None:
        base = "float32"
    by_release(draft, "adapter.dtype", "peft", ("", base), ("0.12", "float32"))


def checkpoint_quantization(draft: Draft) -> None:
    """`quantization.*` of a checkpoint that is stored quantized already (`model.quantized`: bnb-4bit, gptq-4bit, …)."""
    stored = draft.get("model.quantized")
    if not isinstance(stored, str) or draft.has("quantization.bits"):
        return
    kind, _, bits = stored.partition("-")
    bits = bits or {"nvfp4": "4bit", "mxfp4": "4bit", "fp8": "8bit"}.get(kind, "")
    if bits.removesuffix("bit").isdigit():
        draft.derive("quantization.bits", int(bits.removesuffix("bit")), "the checkpoint")
        draft.derive(
            "quantization.type", {"bnb": "nf4" if bits == "4bit" else "int8"}.get(kind, kind), "the checkpoint"
        )


def quantized_checkpoint(draft: Draft) -> None:
    """`checkpoint_quantization`, and LoRA on such a base is QLoRA."""
    checkpoint_quantization(draft)
    method = draft.values.get("method")
    if method is not None and method.value == "lora" and draft.get("quantization.bits") in (4, 8):
        draft.values["method"] = replace(method, value="qlora", note="the base is quantized")


def quantization_defaults(draft: Draft, kind: str = "fp4", double: bool = False, owner: str = "transformers") -> None:
    """What BitsAndBytesConfig does where the files are silent: 4-bit type, double quantization, storage, compute dtype.

    `kind` and `double`: defaults of the framework that builds it.
    """
    bits = draft.get("quantization.bits")
    if bits == 8:
        draft.derive("quantization.type", "int8", "8 bit")
    elif bits == 4:
        draft.default("quantization.type", kind, owner)
        draft.default("quantization.double", double, owner)
        draft.default("quantization.storage", "uint8", owner)
