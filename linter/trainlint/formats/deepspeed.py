"""DeepSpeed's JSON, as a file of its own or as a mapping inside a trainer's config."""

from __future__ import annotations

from dataclasses import replace

from trainlint.documents import Document, Mapping, Node, Scalar
from trainlint.formats.format import Format
from trainlint.formats.fragment import Fragment, say
from trainlint.formats.reading import fragment_of, read_marked
from trainlint.formats.semantics import optimizer_names

NAME = "deepspeed"
SURE = frozenset(("zero_optimization", "train_micro_batch_size_per_gpu", "zero_allow_untested_optimizer"))
LIKELY = frozenset(
    (
        "fp16", "bf16", "optimizer", "scheduler", "steps_per_print", "gradient_clipping", "wall_clock_breakdown",
        "zero_force_ds_cpu_optimizer", "gradient_accumulation_steps", "compression_training", "flops_profiler", "aio",
        "activation_checkpointing", "prescale_gradients", "data_efficiency", "amp", "sparse_attention", "autotuning",
        "tensorboard", "communication_data_type",
    )
)  # fmt: skip
OTHERS = frozenset(
    ("pipe_parallel_size", "pipe-parallel-size", "num_layers", "hidden_size", "model_type", "model_name_or_path")
)
"""Keys of frameworks that embed DeepSpeed's in a mapping of their own (GPT-NeoX)."""


def recognise(document: Document, root: Node | None) -> int:
    """A JSON object with ZeRO, DeepSpeed's batch keys, or several of its sections."""
    if document.syntax != "json" or not isinstance(root, Mapping):
        return 0
    names = root.names()
    if names & OTHERS:
        return 0
    likely = len(names & LIKELY)
    if isinstance(root.get("zero_optimization"), Mapping) or names & SURE:
        return 90 if len(names) == 1 or likely or len(names & SURE) > 1 or "train_batch_size" in names else 60
    if "train_batch_size" in names and likely:
        return 85
    sections = [name for name in ("fp16", "bf16", "optimizer", "scheduler") if isinstance(root.get(name), Mapping)]
    return 60 if likely >= 2 and sections else 0


def read(document: Document, root: Node | None) -> Fragment:
    """Stage, offload, buckets, precision flags, batch numbers, optimizer. `auto` says nothing by itself."""
    fragment = fragment_of(NAME, document, root, framework=NAME)
    finish(fragment)
    return fragment


def finish(fragment: Fragment) -> None:
    """What the schema's marks can not say: the optimizer by its Hugging Face name."""
    kind = fragment.entry("optimizer.type")
    if kind is not None and isinstance(kind.value, Scalar):
        name = optimizer_names.deepspeed(kind.value.value)
        if name is not None:
            fragment.values["optimizer.name"] = say(fragment.format, "optimizer.type", kind.value, name)


def read_block(fragment: Fragment, block: Mapping, prefix: str) -> None:
    """Add a DeepSpeed config that stands as a mapping inside another config, below the dotted `prefix`.

    The outer file's own values stay the winners; what they disagree with is kept beside them.
    """
    inner = Fragment(NAME, fragment.document, block, framework=NAME)
    read_marked(inner, NAME)
    finish(inner)
    for path, value in inner.values.items():
        placed = replace(value, key=f"{prefix}.{value.key}")
        outer = fragment.values.get(path)
        if outer is None:
            fragment.values[path] = placed
        elif outer.value != placed.value:
            fragment.values[path] = outer.beside(placed)


FORMAT = Format(NAME, "DeepSpeed config", recognise, read, framework=NAME, package=NAME)
