"""Lightning's precision words, as Fabric and the Trainer read them.

Source: lightning 2.0-2.6, fabric/plugins/precision/{precision,amp,half,fsdp}.py, pytorch/plugins/precision/fsdp.py.
"""

from __future__ import annotations

from trainlint.formats.format import Draft

ALIASES = {"16": "16-mixed", "bf16": "bf16-mixed", "32": "32-true", "64": "64-true"}
"""Old words → those of today."""
DTYPES = {"16": "float16", "bf16": "bfloat16", "32": "float32"}


def meant(word: object) -> str | None:
    """The word of today, or None for something else (`transformer-engine`, double precision among them)."""
    text = str(word)
    text = ALIASES.get(text, text)
    head, _, kind = text.partition("-")
    return text if head in DTYPES and kind in ("mixed", "true") else None


def regime(draft: Draft, word: str, engine: str = "") -> None:
    """weights, compute, autocast and scaler of a word. `engine`: fsdp casts the shards itself, deepspeed the model."""
    head, _, kind = word.partition("-")
    dtype, note = DTYPES[head], f"precision `{word}`"
    mixed = kind == "mixed" and dtype != "float32"
    if engine == "deepspeed":
        draft.derive("precision.weights", dtype, f"DeepSpeed casts the model, {note}")
        draft.derive("precision.compute", dtype, f"DeepSpeed casts the model, {note}")
        draft.derive("precision.autocast", False, "DeepSpeed casts the model instead")
        if dtype != "float32":
            draft.derive("precision.gradients", dtype, "DeepSpeed")
            draft.derive("precision.master", "float32", "DeepSpeed's copy in the optimizer")
        draft.derive("precision.moments", "float32", "DeepSpeed's optimizer")
    else:
        draft.derive("precision.weights", "float32" if mixed else dtype, note)
        draft.derive("precision.compute", dtype, note)
        draft.derive("precision.autocast", mixed and engine != "fsdp", note)
    draft.derive("precision.grad_scaler", mixed and dtype == "float16", note)
    if engine == "fsdp":
        draft.derive("sharding.reduce_dtype", dtype, note)
