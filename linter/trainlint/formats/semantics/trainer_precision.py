"""Number formats of a run by the Hugging Face Trainer: what is loaded, what autocast does, what an engine makes of it.

The order decides. `load_dtype` says in which dtype `from_pretrained` holds the weights. `mixed_precision` reads the
Trainer's `bf16` / `fp16`, else the launcher's `mixed_precision`. Then the engine has the last word: DeepSpeed casts
every parameter and keeps a float32 copy in its partition, FSDP under accelerate lifts what trains to float32 and
computes in the low dtype.

Sources: transformers 4.57.6, 5.0.0, 5.24.0 modeling_utils.py, training_args.py; accelerate 0.27-1.15 accelerator.py,
utils/fsdp_utils.py; DeepSpeed 0.16.9-0.19.8 runtime/engine.py, runtime/zero/*.py.
"""

from __future__ import annotations

from dataclasses import replace

from trainlint.formats.format import Draft
from trainlint.formats.semantics.release import by_release, holds, release
from trainlint.run import Value

DTYPE_WORDS: dict[str, str] = {
    "float32": "float32",
    "fp32": "float32",
    "float": "float32",
    "bfloat16": "bfloat16",
    "bf16": "bfloat16",
    "float16": "float16",
    "fp16": "float16",
    "half": "float16",
}
"""How configs write a dtype, after a leading `torch.` is taken off."""

MIXED_WORDS = {"bf16": "bfloat16", "fp16": "float16", "fp8": "bfloat16"}
"""accelerate's `mixed_precision` → what matrix products run in (fp8 recipes autocast to bf16 around them)."""


def dtype_word(text: object) -> str | None:
    """The vocabulary's dtype for a written one, or None (`auto` among others)."""
    return DTYPE_WORDS.get(text.removeprefix("torch.").lower()) if isinstance(text, str) else None


def checkpoint_dtype(draft: Draft, note: str) -> list[tuple[object, str]]:
    """The dtype of the checkpoint as options for `Draft.either`: one where it is known, else the two usual ones."""
    stored = draft.get("model.dtype")
    if stored in ("float32", "bfloat16", "float16"):
        return [(stored, note)]
    return [("bfloat16", f"{note}, a checkpoint in bfloat16"), ("float32", f"{note}, a checkpoint in float32")]


def load_dtype(draft: Draft, written: object = None) -> None:
    """`precision.weights` as `from_pretrained` holds them, where no file says it as a dtype.

    `written`: what the user's dtype key says: `auto` means the checkpoint's. Nothing written: float32 before
    transformers 5 (float16 beside a bitsandbytes config), the checkpoint's dtype since.
    """
    if draft.has("precision.weights"):
        return
    word = dtype_word(written)
    if word is not None:
        draft.derive("precision.weights", word, "the dtype that the model is loaded in")
        return
    if written == "auto":
        draft.either("precision.weights", *checkpoint_dtype(draft, "dtype `auto`"), origin="derived")
        return
    five = release(draft.versions, "transformers").since("5")
    options: list[tuple[object, str]] = []
    if five is not True:
        old = "float16" if draft.get("quantization.bits") in (4, 8) else "float32"
        options.append((old, holds("transformers", "", "5")))
    if five is not False:
        options += checkpoint_dtype(draft, holds("transformers", "5", ""))
    draft.either("precision.weights", *options)


def half_precision(draft: Draft) -> tuple[str | None, str]:
    """The low dtype that mixed precision asks for, and who asks. None and "" where nothing does."""
    if draft.get("precision.bf16") is True:
        return "bfloat16", "`bf16`"
    if draft.get("precision.fp16") is True:
        return "float16", "`fp16`"
    mixed = draft.get("precision.mixed")
    if isinstance(mixed, str) and mixed in MIXED_WORDS and not draft.possible.get("precision.bf16"):
        return MIXED_WORDS[mixed], "the launcher's `mixed_precision`"
    return None, ""


def engine(draft: Draft) -> str:
    """The engine that holds the states (`sharding.kind`); `fsdp` also where only FSDP's version is open, else ""."""
    kind = draft.get("sharding.kind")
    if isinstance(kind, str):
        return kind
    options = {value.value for value in draft.possible.get("sharding.kind", ())}
    return "fsdp" if options and options <= {"fsdp", "fsdp2"} else ""


def mixed_precision(draft: Draft) -> None:
    """compute, autocast, grad_scaler, and gradients, master, moments where an engine decides them.

    Call it after `load_dtype` and after the engine (`sharding.kind`) is known.
    """
    if draft.possible.get("precision.bf16") and draft.get("precision.fp16") is not True:
        _undecided(draft)
        return
    half, why = half_precision(draft)
    kind = engine(draft)
    if kind.startswith("zero"):
        _deepspeed(draft, half, why)
    elif kind in ("fsdp", "fsdp2"):
        _fsdp(draft, half, why, kind)
    elif half is not None:
        draft.derive("precision.compute", half, f"{why} autocasts")
        draft.derive("precision.autocast", True, why)
        draft.derive("precision.grad_scaler", half == "float16", why)
    else:
        _as_loaded(draft)


def _as_loaded(draft: Draft) -> None:
    """No mixed precision: everything runs in the dtype of the weights."""
    draft.derive("precision.autocast", False, "no mixed precision")
    draft.derive("precision.grad_scaler", False, "no mixed precision")
    weights = draft.values.get("precision.weights")
    if weights is not None:
        draft.derive("precision.compute", weights.value, "the dtype of the weights")
    elif draft.possible.get("precision.weights"):
        options = [(value.value, value.note) for value in draft.possible["precision.weights"]]
        draft.either("precision.compute", *options, origin="derived")


def _undecided(draft: Draft) -> None:
    """Only an unknown release decides whether bf16 is on: compute and autocast follow, with the same notes."""
    weights = draft.get("precision.weights") or "float32"
    flags = draft.possible["precision.bf16"]
    draft.either(
        "precision.compute",
        *(("bfloat16" if flag.value else weights, flag.note) for flag in flags),
        origin="derived",
    )
    draft.either("precision.autocast", *((flag.value, flag.note) for flag in flags), origin="derived")
    draft.derive("precision.grad_scaler", False, "no fp16")


def overrule(draft: Draft, path: str, value: object, note: str) -> None:
    """What the engine makes of a value, whatever was loaded or written; the path is then derived."""
    before = draft.values.get(path)
    draft.possible.pop(path, None)
    if before is None or before.value != value:
        lost = (replace(before, note=note),) if before is not None and before.written else ()
        draft.values[path] = Value(value, "derived", note=note, losers=lost)


def _deepspeed(draft: Draft, half: str | None, why: str) -> None:
    stage = str(draft.get("sharding.kind"))
    draft.derive("precision.autocast", False, "DeepSpeed casts the model instead")
    draft.derive("precision.grad_scaler", half == "float16", why or "no fp16")
    if half is None:
        overrule(draft, "precision.weights", "float32", "DeepSpeed without bf16 or fp16")
        draft.derive("precision.compute", "float32", "DeepSpeed without bf16 or fp16")
        draft.derive("precision.moments", "float32", "DeepSpeed")
        if stage != "zero0":
            draft.derive("precision.master", "float32", "ZeRO keeps a copy of its partition")
        return
    note = f"DeepSpeed casts the model, {why}"
    overrule(draft, "precision.weights", half, note)
    draft.derive("precision.compute", half, note)
    if draft.get("method") in ("lora", "qlora"):
        overrule(draft, "adapter.dtype", half, note)
    draft.derive("precision.gradients", half, note)
    kept_low = _engine_says(draft, "bf16_master_weights_and_grads", "fp16_master_weights_and_grads")
    draft.derive("precision.master", "none" if kept_low else "float32", "DeepSpeed's copy in the optimizer")
    low_states = kept_low and _engine_says(draft, "bf16_optimizer_states")
    draft.derive("precision.moments", half if low_states else "float32", "DeepSpeed's optimizer")


def _engine_says(draft: Draft, *flags: str) -> bool:
    """Whether a DeepSpeed config, of its own or inline, sets one of these flags."""
    for fragment in draft.fragments:
        for name, entry in fragment.keys.items():
            if name.rpartition(".")[2] in flags and getattr(entry.value, "value", None) is True:
                return True
    return False


def _fsdp(draft: Draft, half: str | None, why: str, kind: str) -> None:
    draft.derive("precision.grad_scaler", half == "float16", why or "no fp16")
    if half is None:
        _as_loaded(draft)
        return
    draft.derive("precision.autocast", False, "FSDP's mixed precision policy casts the shards")
    draft.derive("precision.compute", half, f"{why} as FSDP's mixed precision")
    draft.derive("sharding.reduce_dtype", half, f"{why} as FSDP's mixed precision")
    known = release(draft.versions, "accelerate")
    note = "accelerate lifts what trains to float32 under FSDP with mixed precision"
    if draft.get("method") in ("lora", "qlora"):
        if kind == "fsdp2" and known.since("1.6") and known.since("1.13") is False:
            overrule(
                draft, "precision.weights", "float32", "accelerate >=1.6,<1.13 lifts the frozen base to float32 too"
            )
        return
    if draft.get("precision.weights") == "float32":
        return
    lifted = known.since("0.30.1") if kind == "fsdp" else True
    if lifted:
        overrule(draft, "precision.weights", "float32", note)
    elif lifted is None and draft.has("precision.weights"):
        before = draft.values.pop("precision.weights", None)
        options = draft.possible.pop("precision.weights", ()) or ((before,) if before is not None else ())
        held = [(value.value, holds("accelerate", "", "0.30.1")) for value in options]
        draft.either("precision.weights", ("float32", holds("accelerate", "0.30.1", "")), *held, origin="derived")


def reentrant(draft: Draft) -> None:
    """`checkpointing.reentrant` where it is not written: on before transformers 5, off since."""
    if draft.get("checkpointing.kind") == "full" or draft.possible.get("checkpointing.kind"):
        by_release(draft, "checkpointing.reentrant", "transformers", ("", True), ("5", False))


def shifted_loss(draft: Draft) -> None:
    """`loss` where transformers copies the logits in float32 to shift them: 4.46 to 4.48 (loss/loss_utils.py).

    Before, the 16-bit logits were let go first, so that the peak is that of today, which shifts the labels.
    """
    known = release(draft.versions, "transformers")
    if draft.get("loss") == "full" and known.since("4.46") and known.since("4.49") is False:
        draft.values["loss"] = Value("shifted", "derived", note="transformers >=4.46,<4.49")


def attention(draft: Draft) -> None:
    """`attention` where it is not written: SDPA, and eager where transformers is known to be before 4.36."""
    if release(draft.versions, "transformers").since("4.36") is False:
        draft.default("attention", "eager", "transformers <4.36")
    else:
        draft.default("attention", "sdpa", "transformers >=4.36")
