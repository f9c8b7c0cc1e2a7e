"""MLX-LM: fine-tuning on Apple silicon, `mlx_lm.lora --config`.

Source: mlx-lm 0.9 to 0.32, lora.py and tuner/{lora,trainer,utils}.py. Its loader reads `1e-5` as a float and ignores
unknown keys.
"""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node, Scalar
from trainlint.facts import models
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, say
from trainlint.formats.reading import fragment_of, truth
from trainlint.formats.semantics.release import by_release, release
from trainlint.run import Value

NAME = "mlx-lm"

KEYS = frozenset(
    {
        "adapter_file",
        "adapter_path",
        "fine_tune_type",
        "grad_checkpoint",
        "lora_layers",
        "mask_prompt",
        "num_layers",
        "resume_adapter_file",
        "save_every",
        "steps_per_eval",
        "steps_per_report",
        "test_batches",
        "val_batches",
    }
)
"""Keys of its defaults that hardly any other trainer has."""
DTYPES = ("float32", "bfloat16", "float16")


def recognise(document: Document, root: Node | None) -> int:
    """`lora_parameters`, or `iters` or `fine_tune_type` among others of its keys."""
    if not isinstance(root, Mapping):
        return 0
    names = root.names()
    own = len(names & KEYS)
    if isinstance(root.get("lora_parameters"), Mapping) and (own or "iters" in names or "model" in names):
        return 95
    if "iters" in names and own >= 2:
        return 90
    if "fine_tune_type" in names and own >= 2:
        return 85
    if {"model", "data", "train"} <= names and own:
        return 70 if "iters" in names or "fine_tune_type" in names else 50 if own >= 2 else 0
    return 0


def read(document: Document, root: Node | None) -> Fragment:
    """What the config says; `train: false` only tests, so that no run starts."""
    fragment = fragment_of(NAME, document, root, framework="mlx-lm", section="CONFIG_DEFAULTS")
    fragment.launches = truth(fragment.written("train")) is not False
    entry = fragment.entry("fine_tune_type")
    kind = entry.value if entry is not None and isinstance(entry.value, Scalar) else None
    if kind is not None and kind.value in ("lora", "dora"):
        fragment.values["method"] = say(NAME, "fine_tune_type", kind, "lora")
        fragment.values["adapter.kind"] = say(NAME, "fine_tune_type", kind, kind.value)
    elif kind is not None and kind.value == "full":
        fragment.values["method"] = say(NAME, "fine_tune_type", kind, "freeze")
    dora = fragment.value("use_dora")
    if dora is not None and dora.value is True:
        fragment.values["adapter.kind"] = Value("dora", "written", "use_dora", dora.place, dora.raw, file_format=NAME)
    accumulation, iters = fragment.values.get("batch.accumulation"), fragment.values.get("schedule.max_steps")
    if accumulation is not None and iters is not None:
        times, count = accumulation.value, iters.value
        if isinstance(times, int) and isinstance(count, int) and times > 1:
            note = "`iters` counts batches, an optimizer step takes `grad_accumulation_steps` of them"
            fragment.values["schedule.max_steps"] = Value(
                count // times, "derived", "iters", iters.place, iters.raw, iters.unit, note, NAME
            )
    return fragment


def complete(draft: Draft) -> None:
    """Adapters or the last blocks in full, in the checkpoint's dtype, in memory that device and host share."""
    draft.default("framework", NAME, "mlx-lm")
    by_release(draft, "model.id", NAME, ("", "mlx_model"), ("0.28", "Qwen/Qwen3-0.6b"))
    _storage(draft)
    draft.default("method", "lora", "mlx-lm")
    draft.default("objective", "sft", "mlx-lm")
    draft.default("adapter.layers", 16, "mlx-lm trains the last 16 blocks")
    if draft.get("method") in ("lora", "qlora"):
        _adapter(draft)
    _batch(draft)
    draft.default("length.max", 2048, "mlx-lm")
    draft.default("length.packing", False, "mlx-lm")
    draft.derive("length.padded", False, "mlx-lm's attention is causal and carries no padding mask")
    draft.default("checkpointing.kind", "none", "mlx-lm")
    draft.derive("checkpointing.reentrant", False, "mlx-lm checkpoints functions")
    draft.default("attention", "sdpa", "mlx-lm")
    draft.default("loss", "full", "mlx-lm builds all logits")
    draft.default("optimizer.name", "adamw_torch_fused", "mlx-lm's adam")
    draft.default("optimizer.lr", 1e-5, "mlx-lm")
    draft.default("clip", 0.0, "mlx-lm does not clip")
    draft.default("schedule.max_steps", 1000, "mlx-lm", "step")
    draft.default("evaluation.steps", 25, "mlx-lm", "step")
    draft.derive("evaluation.gather_logits", False, "mlx-lm keeps the loss of each batch alone")
    draft.derive("sharding.kind", "none", "mlx-lm keeps a whole model on every device")
    draft.derive("device.unified", True, "MLX runs on memory that device and host share")


def _storage(draft: Draft) -> None:
    """dtype and quantization are the checkpoint's."""
    name = draft.get("model.id")
    model = models.find(name) if isinstance(name, str) else None
    stored = draft.get("model.quantized") or (model.quantized if model is not None else None)
    if isinstance(stored, str) and stored.startswith("mlx-"):
        bits = stored.removeprefix("mlx-").removesuffix("bit")
        if bits.isdigit():
            draft.derive("quantization.bits", int(bits), f"the checkpoint `{name}` is quantized")
            draft.derive("quantization.type", "mlx", "MLX's affine quantization in groups of 64")
            draft.derive("quantization.double", False, "MLX's affine quantization in groups of 64")
            draft.derive("quantization.prepared", False, "mlx-lm leaves the checkpoint's dtypes")
    if draft.get("quantization.bits") and draft.get("method") in ("lora", None):
        written = draft.values.get("method")
        if written is not None:
            draft.values["method"] = Value(
                "qlora", written.origin, written.key, written.place, written.raw, file_format=NAME
            )
        else:
            draft.derive("method", "qlora", "mlx-lm's default `lora`, on a quantized checkpoint")
    dtype = draft.get("model.dtype")
    if dtype in DTYPES:
        draft.derive("precision.weights", dtype, "mlx-lm keeps the checkpoint's dtype")
    else:
        draft.put("precision.weights", "bfloat16", "assumed", "mlx-lm keeps the checkpoint's dtype, taken as bfloat16")
    draft.derive("precision.compute", draft.get("precision.weights"), "mlx-lm computes in the checkpoint's dtype")
    draft.derive("precision.autocast", False, "MLX has no autocast")
    draft.derive("precision.grad_scaler", False, "mlx-lm never scales the loss")


def _adapter(draft: Draft) -> None:
    draft.default("adapter.kind", "lora", "mlx-lm")
    draft.default("adapter.rank", 8, "mlx-lm")
    draft.default("adapter.dropout", 0.0, "mlx-lm")
    draft.derive("adapter.dtype", "float32", "mlx-lm makes adapters with the array constructors' default")
    known, every, few = release(draft.versions, NAME), ("all-linear",), ("q_proj", "v_proj")
    if known.since("0.28.4"):
        draft.default("adapter.targets", every, "mlx-lm >=0.28.4")
    elif known.since("0.21") is False:
        draft.default("adapter.targets", few, "mlx-lm <0.21")
    else:
        draft.either("adapter.targets", (every, "mlx-lm >=0.28.4"), (few, "mlx-lm <0.21"))


def _batch(draft: Draft) -> None:
    """`batch_size` is shared out over the workers of `mlx.launch`."""
    draft.default("batch.micro", 4, "mlx-lm", "sample")
    draft.default("batch.accumulation", 1, "mlx-lm")
    world, total = draft.get("parallel.world"), draft.values["batch.micro"]
    if isinstance(world, int) and world > 1 and isinstance(total.value, int) and total.value % world == 0:
        note = f"`batch_size` over {world} workers"
        draft.values["batch.micro"] = Value(
            total.value // world, "derived", total.key, total.place, total.raw, total.unit, note, NAME
        )


FORMAT = Format(
    name=NAME,
    title="MLX-LM fine-tuning config",
    recognise=recognise,
    read=read,
    complete=complete,
    framework=NAME,
    package=NAME,
)
