"""From the id or folder a config names to the model's shape and exact size."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from trainlint.facts import cache, models
from trainlint.formats import Draft
from trainlint.resolve.join import find_file
from trainlint.resolve.weights import Weights, weights

SHAPES: dict[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model", "dim"),
    "heads": ("num_attention_heads", "n_head", "num_heads", "n_heads"),
    "kv_heads": ("num_key_value_heads",),
    "head_dim": ("head_dim", "d_kv"),
    "ffn": ("intermediate_size", "n_inner", "d_ff", "ffn_dim"),
    "vocab": ("vocab_size",),
    "positions": ("max_position_embeddings", "n_positions", "max_seq_len"),
    "sliding_window": ("sliding_window",),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts"),
    "experts_per_token": ("num_experts_per_tok",),
}
DTYPES = {"float32": "float32", "bfloat16": "bfloat16", "float16": "float16", "torch.bfloat16": "bfloat16"}
HEADS = {
    "ForCausalLM": "causal-lm",
    "LMHeadModel": "causal-lm",
    "ForSequenceClassification": "classification",
    "ForTokenClassification": "classification",
    "ForMaskedLM": "masked-lm",
    "ForImageClassification": "image-classification",
    "ForSpeechSeq2Seq": "speech-seq2seq",
    "WhisperForConditionalGeneration": "speech-seq2seq",
    "ForConditionalGeneration": "seq2seq",
}


def add_model(draft: Draft, origin: Path) -> None:
    """Fill `model.*` from what the run names: a config that joined, a local folder, or a known id."""
    config = draft.get("model.config")
    if isinstance(config, Mapping):
        _from_config(draft, config, "config.json")
        joined = draft.fragment("model-config")
        if joined is not None:
            _from_weights(draft, weights(Path(joined.file).parent))
        return
    name = draft.get("model.id")
    named = [
        reference.text for fragment in draft.fragments for reference in fragment.references if reference.role == "model"
    ]
    for text in (*named, *([name] if isinstance(name, str) else [])):
        path = find_file(origin, text, ("config.json",))
        if path is not None and path.suffix == ".json" and _from_folder(draft, path):
            return
    if not isinstance(name, str) or not name:
        return
    fetched = cache.find(name)
    if fetched is not None:
        note = f"{fetched.id}, fetched from {fetched.source.partition('://')[2].partition('/')[0] or 'a hub'}"
        draft.derive("model.config", fetched.config, note)
        _from_config(draft, fetched.config, note)
        _from_weights(draft, Weights(fetched.nbytes, fetched.parameters, fetched.dtype, note))
        return
    model = models.find(name)
    if model is None:
        stored = models.stored(name)
        if stored is not None:
            draft.put("model.quantized", stored, "derived", f"the name `{name}`")
        count = models.parameters_from_name(name)
        if count is not None:
            draft.put(
                "model.parameters",
                count,
                "assumed",
                f"{count / 1e9:g} B parameters, from the name `{name}`",
                "parameter",
            )
        return
    origin_of = "assumed" if model.by_name else "derived"
    note = f"the shape of {model.id}, known by the name alone" if model.by_name else model.id
    draft.put("model.config", model.config, origin_of, note)
    draft.put("model.parameters", model.parameters, origin_of, note, "parameter")
    if model.quantized:
        draft.put("model.quantized", model.quantized, "derived", f"the name `{name}`")
    if model.positions:
        draft.put("model.shape.positions", model.positions, origin_of, note, "token")
    _from_config(draft, model.config, note, origin_of)


def _from_folder(draft: Draft, path: Path) -> bool:
    config = _json(path)
    if config is None:
        return False
    draft.derive("model.config", config, path.name)
    _from_config(draft, config, path.name)
    _from_weights(draft, weights(path.parent))
    return True


def _from_weights(draft: Draft, found: Weights | None) -> None:
    """The exact size of the weights, their number, and the dtype of most of them."""
    if found is None:
        return
    if found.nbytes is not None:
        draft.derive("model.checkpoint_bytes", found.nbytes, found.note, "byte")
    if found.parameters is not None:
        draft.derive("model.parameters", found.parameters, found.note, "parameter")
    if found.dtype in DTYPES.values():
        draft.derive("model.dtype", found.dtype, found.note)


def _json(path: Path) -> dict[str, object] | None:
    try:
        loaded = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return loaded if isinstance(loaded, dict) else None


def _from_config(draft: Draft, config: Mapping[str, object], note: str, origin: str = "derived") -> None:
    inner = config.get("text_config")
    text: Mapping[str, object] = {**config, **inner} if isinstance(inner, Mapping) else config
    for name, keys in SHAPES.items():
        found = next((text[key] for key in keys if isinstance(text.get(key), int)), None)
        if found is not None:
            draft.put(
                f"model.shape.{name}", found, origin, note, "token" if name in ("positions", "sliding_window") else ""
            )
    for path, key in (("model.shape.tied", "tie_word_embeddings"), ("model.shape.rope_scaling", "rope_scaling")):
        if text.get(key) is not None:
            draft.put(path, text[key], origin, note)
    if isinstance(config.get("model_type"), str):
        draft.put("model.type", config["model_type"], origin, note)
    dtype = DTYPES.get(str(config.get("dtype") or config.get("torch_dtype") or text.get("torch_dtype") or ""))
    if dtype:
        draft.put("model.dtype", dtype, origin, note)
    architectures = config.get("architectures")
    if isinstance(architectures, list) and architectures and isinstance(architectures[0], str):
        head = next((head for ending, head in HEADS.items() if architectures[0].endswith(ending)), None)
        if head:
            draft.put("model.head", head, origin, note)
    if stored := _stored(config):
        draft.put("model.quantized", stored, origin, note)


def _stored(config: Mapping[str, object]) -> str | None:
    """How a config says that its checkpoint is quantized: `bnb-4bit`, `gptq-4bit`, `awq-4bit`, `fp8`, `mlx-4bit`."""
    quantization, packed = config.get("quantization_config"), config.get("quantization")
    method = quantization.get("quant_method") if isinstance(quantization, Mapping) else None
    if isinstance(quantization, Mapping) and isinstance(method, str):
        if method == "bitsandbytes":
            return "bnb-8bit" if quantization.get("load_in_8bit") is True else "bnb-4bit"
        bits = quantization.get("bits", quantization.get("w_bit", 4 if method == "awq" else None))
        return f"{method}-{bits}bit" if isinstance(bits, int) and not isinstance(bits, bool) else method
    if isinstance(packed, Mapping) and isinstance(packed.get("bits"), int):
        return f"mlx-{packed['bits']}bit"
    return None
