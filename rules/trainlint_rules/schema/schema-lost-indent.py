"""A key that wants a mapping is empty, and its keys stand behind it at the same level."""

from collections.abc import Iterator, Mapping

from trainlint.api import Edit, Entry, FileView, Fix, Found, Place, Scalar, history, rule

KWARGS = frozenset(("use_reentrant", "preserve_rng_state", "every_n_layers", "offload", "determinism_check"))
CHILDREN: Mapping[str, frozenset[str]] = {
    "gradient_checkpointing_kwargs": KWARGS,
    "activation_checkpointing_kwargs": KWARGS,
    "lr_scheduler_kwargs": frozenset(("num_cycles", "min_lr", "min_lr_rate", "power", "lr_end", "num_decay_steps")),
    "model_init_kwargs": frozenset(("torch_dtype", "dtype", "attn_implementation", "use_cache", "device_map")),
    "special_tokens": frozenset(("pad_token", "bos_token", "eos_token", "unk_token")),
    "lora_parameters": frozenset(("rank", "alpha", "scale", "dropout", "keys")),
    "lr_schedule": frozenset(("name", "warmup", "warmup_init", "arguments")),
    "optimizer_config": frozenset(("adam", "adamw", "muon", "sgd", "adafactor")),
    "accelerator_config": frozenset(("split_batches", "dispatch_batches", "even_batches", "use_seedable_sampler")),
}
"""Keys of mappings that are not keys of the level above."""
BLOCKS = ("fsdp_config", "deepspeed_config")
"""Blocks of an accelerate config, whose keys are in its history."""


@rule(severity="error", on="file", outranks=("schema-unknown-key",))
def check(view: FileView) -> Iterator[Found]:
    fragment = view.fragment
    if fragment.root is None or fragment.document.syntax != "yaml":
        return
    entries = fragment.root.entries
    for at, parent in enumerate(entries):
        if not isinstance(parent.value, Scalar) or parent.value.value is not None:
            continue
        below = CHILDREN.get(parent.name) or _block(parent.name)
        lost: list[Entry] = []
        for entry in entries[at + 1 :]:
            if entry.name not in below or entry.key.place.column != parent.key.place.column:
                break
            lost.append(entry)
        if lost:
            names = ", ".join(f"`{entry.name}`" for entry in lost)
            yield Found(
                at=lost[0].key,
                message=f"{names} stand{'s' if len(lost) == 1 else ''} beside `{parent.name}`, which is left empty: "
                "the indentation is lost",
                help=f"indent {names} under `{parent.name}`",
                notes=[(parent.key, "empty"), *((entry.key, "lost too") for entry in lost[1:])],
                fix=Fix(tuple(edit for entry in lost for edit in _indented(entry)), "safe", "indent"),
            )


def _block(name: str) -> frozenset[str]:
    return frozenset(history.framework("accelerate").section(name)) if name in BLOCKS else frozenset()


def _indented(entry: Entry) -> Iterator[Edit]:
    first, last = entry.key.place, entry.value.place
    end = last.end_line if last.end_column > 1 else last.end_line - 1
    for line in range(first.line, max(end, first.line) + 1):
        yield Edit(Place(first.file, line, 1, line, 1), "  ")
