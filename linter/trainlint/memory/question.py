"""A run as a question to the memory model: what is certain, what is open, and what had to be assumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from trainlint.memory.doubt import doubts
from trainlint.memory.setup import DTYPES, RENAMED, Setup
from trainlint.memory.standin import usual
from trainlint.run import TrainingRun, known

Options = tuple[object, ...]

SHORTEST = 128
"""Tokens of a sample taken for the low end where no length is known."""
USUAL = 2048
"""Tokens taken for the likely value where no length is known, or the model's positions if they are fewer."""
MANY = 4096
"""Processes taken for the low end where the number of shards is not known."""


@dataclass(frozen=True, slots=True)
class Question:
    """A run as the memory model sees it: what is certain, and by path what may be.

    `spans` are (lowest, likeliest, highest) in what they need, `options` in no order.
    """

    config: Mapping[str, object]
    words: Mapping[str, object]
    options: Mapping[str, Options]
    spans: Mapping[str, Options]
    assumptions: tuple[str, ...]
    unknown: tuple[str, ...]
    unbounded: bool
    rounded: bool | None = None
    """Of a model without a known shape: whether its parameter count is a rounded one, from a name."""


def asked(run: TrainingRun) -> Question | None:
    """What the run says to the memory model, or None without a shape."""
    config = run.model.config.value if run.model.config is not None else None
    size, rounded = run.model.parameters, None
    if config is None and size is not None and SMALLEST <= size.value <= LARGEST:
        config, rounded = usual(size.value), size.origin == "assumed"
    if not isinstance(config, Mapping) or not (_sound(config) and _sound(config.get("text_config") or {})):
        return None
    if any(run.values[path].value < 1 for path in COUNTS if path in run.values):  # type: ignore[operator]
        return None
    formats = [value.value for path in FORMATS for value in (run.get(path), *run.possible.get(path, ())) if value]
    if not all(name in DTYPES for name in formats):
        return None
    words: dict[str, object] = {}
    for path in (*RENAMED, *TOP, *SHARDING):
        value = run.get(path)
        if value is not None and not (path == "method" and value.value == "freeze" and run.adapter.layers is None):
            words[path] = value.value
    options: dict[str, Options] = {}
    assumptions: list[str] = [value.note for value in run.values.values() if value.origin == "assumed" and value.note]
    unknown: list[str] = []
    for path, values in run.possible.items():
        if path in RENAMED or path in TOP or path in SHARDING:
            options[path] = tuple(value.value for value in values)
            notes = ", ".join(f"{value.value} ({value.note})" for value in values)
            unknown.append(f"{path}: {notes}")
    spans: dict[str, Options] = {}
    unbounded = _fill(run, words, options, spans, assumptions, unknown)
    for doubt in doubts(run, config, words, {*words, *options, *spans}):
        spans[doubt.path] = (doubt.low, doubt.likely, doubt.high)
        assumptions += [doubt.said] if doubt.said else []
    if rounded is not None:
        assumptions.append("activations of a usual model of that size")
        unknown.append("model.shape")
        unbounded = True
    return Question(config, words, options, spans, tuple(assumptions), tuple(unknown), unbounded, rounded)


COUNTS = ("batch.micro", "length.max", "adapter.rank", "parallel.data", "parallel.tensor", "parallel.pipeline")
FORMATS = ("precision.weights", "precision.compute")
SIZES = (
    "hidden_size", "n_embd", "d_model", "num_hidden_layers", "n_layer", "num_layers", "num_attention_heads", "n_head",
    "num_heads", "num_key_value_heads", "intermediate_size", "ffn_dim", "d_ff", "vocab_size", "head_dim",
)  # fmt: skip
SMALLEST, LARGEST = 200_000_000, 10**12
"""Parameters of models that a usual shape may stand for."""
DEEPEST = 1000
"""Blocks that a model may have."""


def _sound(config: object) -> bool:
    """Whether the sizes of a config.json, which anybody may have written, are sizes."""
    if not isinstance(config, Mapping):
        return False
    sizes = {name: config[name] for name in SIZES if config.get(name) is not None}
    return all(type(size) is int and size > 0 for size in sizes.values()) and all(
        sizes.get(name, 1) <= DEEPEST for name in ("num_hidden_layers", "n_layer", "num_layers")
    )


TOP = (
    "method",
    "activation_offload",
    "kernels",
    "attention",
    "loss",
    "objective",
    "reference",
    "zero_grad",
    "clip",
)
SHARDING = (
    "sharding.reshard_after_forward",
    "sharding.strategy",
    "sharding.use_orig_params",
    "sharding.wrap",
    "sharding.reduce_dtype",
    "sharding.offload_optimizer",
    "sharding.offload_parameters",
    "sharding.reduce_bucket",
    "sharding.prefetch_bucket",
    "sharding.overlap_comm",
    "sharding.bucket_mb",
    "sharding.bucket_view",
)


def _fill(
    run: TrainingRun,
    words: dict[str, object],
    options: Mapping[str, Options],
    spans: dict[str, Options],
    assumptions: list[str],
    unknown: list[str],
) -> bool:
    """Give what is not known its lowest, likeliest and highest value; return whether the high end stays open."""

    def open_(path: str, low: object, likely: object, high: object, open_end: bool = False) -> bool:
        if path in words or path in options:
            return False
        spans[path] = (low, likely, high)
        unknown.append(path)
        return open_end

    positions = run.model.shape.positions
    usual = min(USUAL, positions.value) if positions is not None else USUAL
    unbounded = open_("batch.micro", 1, 1, 1, True)
    unbounded |= open_("length.max", min(SHORTEST, usual), usual, usual, True)
    _rows(run, words, spans, assumptions)
    open_("precision.weights", "bfloat16", "bfloat16", "float32")
    open_("method", "qlora", "full", "full")
    if "method" in spans and "quantization.bits" not in words:
        spans["quantization.bits"], spans["quantization.type"] = (4, 0, 0), ("nf4", "", "")
    if words.get("method") in ("lora", "qlora"):
        open_("adapter.rank", 8, 8, 64)
        words.setdefault("adapter.targets", "all-linear")
    open_("checkpointing.kind", "full", "none", "none")
    open_("optimizer.name", "sgd", "adamw_torch_fused", "adamw_torch")
    engines = {words.get("sharding.kind"), *options.get("sharding.kind", ())}
    if engines - {None, "none", "device-map"}:
        open_("parallel.data", MANY, 8, 1)
    elif "device-map" in engines or "parallel.data" not in words:
        words["parallel.data"] = 1
    if "device-map" in engines:
        unbounded = True
        unknown.append("how device_map spreads the blocks")
    if "attention" not in words and "attention" not in options:
        assumptions.append("attention kernel: sdpa")
    return unbounded


def _rows(run: TrainingRun, words: dict[str, object], spans: dict[str, Options], assumptions: list[str]) -> None:
    """How long batches get: a limit on the length says it where rows are filled up, else the data do.

    A run file gives the length of the batches themselves.
    """
    limit, longest = run.length.max, run.data.tokens.get("max")
    if limit is None or run.root_format == "trainlint-run" or "length.max" not in words:
        return
    filled = (run.length.packing, run.length.pad_to_max)
    if any(flag is not None and flag.value for flag in filled) or known(run.objective) == "pretrain":
        return
    if longest is not None and longest.origin == "written":
        words["length.max"] = min(limit.value, longest.value)
        return
    short = min(limit.value, max(SHORTEST, longest.value if longest is not None else 0))
    if short < limit.value:
        del words["length.max"]
        spans["length.max"] = (short, limit.value, limit.value)
        assumptions.append(f"samples as long as `{limit.key or 'length.max'}: {limit.value}` allows")


def setup_of(question: Question, chosen: Mapping[str, object]) -> Setup:
    """The setup with one value for each of what is open."""
    nested: dict[str, object] = {}
    for path, value in {**question.words, **chosen}.items():
        group = nested
        *above, last = path.split(".")
        for name in above:
            group = cast(dict[str, object], group.setdefault(name, {}))
        group[last] = value
    return Setup.from_words(nested)
