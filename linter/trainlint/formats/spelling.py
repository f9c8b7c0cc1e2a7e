"""How a value of a run is written in a format: a schema's marks read backwards.

`spell("mlx-lm", "yaml", "checkpointing.kind", "full")` is `grad_checkpoint: true`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from trainlint.formats.reading import Key, marked

READS = {
    "trl": ("trl", "hf-trainer"),
    "llamafactory": ("llamafactory", "hf-trainer"),
    "python-script": ("python-script", "trl", "hf-trainer"),
    "shell-launcher": ("trl", "hf-trainer"),
}
"""Formats whose keys are those of several schemas, the nearest first."""

PREFERRED = frozenset(
    [
        "attn_implementation",
        "dtype",
        "enable_liger_kernel",
        "gradient_checkpointing",
        "lora_r",
        "max_length",
        "per_device_eval_batch_size",
        "per_device_train_batch_size",
        "training.local_batch_size",
        "use_liger_kernel",
    ]
)
"""Of several keys for one path, those that today's releases document."""

WORDS: dict[tuple[str, str, object], tuple[tuple[str, str], ...]] = {
    ("axolotl", "method", "lora"): (("adapter", "lora"),),
    ("axolotl", "method", "qlora"): (("adapter", "qlora"), ("load_in_4bit", "true")),
    ("axolotl", "activation_offload", True): (("activation_offloading", "true"),),
    ("axolotl", "kernels", "liger"): (
        ("plugins", "[axolotl.integrations.liger.LigerPlugin]"),
        ("liger_fused_linear_cross_entropy", "true"),
    ),
    ("axolotl", "optimizer.name", "adamw_bnb_8bit"): (("optimizer", "adamw_bnb_8bit"),),
    ("llamafactory", "method", "lora"): (("finetuning_type", "lora"),),
    ("llamafactory", "method", "qlora"): (("finetuning_type", "lora"), ("quantization_bit", "4")),
    ("mlx-lm", "method", "lora"): (("fine_tune_type", "lora"),),
    ("torchtitan", "checkpointing.kind", "full"): (("activation_checkpoint.mode", '"full"'),),
    ("trl", "method", "lora"): (("use_peft", "true"),),
    ("trl", "method", "qlora"): (("use_peft", "true"), ("load_in_4bit", "true")),
}
"""Keys and values where the schema alone does not say: several keys, or words of a format's own code."""


def spell(format_name: str, syntax: str, path: str, value: object, key: str = "") -> str | None:
    """A value as text of the format, in backticks; None where the format has no word for it.

    `key` is the one the user has written for the path, if any; the spelling keeps to it.
    """
    pairs = spelled(format_name, path, value, key)
    return None if pairs is None else written(syntax, pairs)


def spelled(format_name: str, path: str, value: object, key: str = "") -> tuple[tuple[str, str], ...] | None:
    """A value as keys of the format with their texts; None where the format has no word for it."""
    try:
        own = next((WORDS[name, path, value] for name in _schemas(format_name) if (name, path, value) in WORDS), None)
    except TypeError:  # a list or a mapping
        return None
    return own or _pair(format_name, path, value, key)


def written(syntax: str, pairs: Iterable[tuple[str, str]]) -> str:
    """Keys with their texts as the syntax writes them, each in backticks."""
    return " and ".join(f"`{_written(syntax, name, text)}`" for name, text in pairs)


def key_for(format_name: str, path: str) -> str:
    """The key that a format has for a path, the one that today's releases document; empty where it has none."""
    candidates = sorted(_keys(format_name, path), key=lambda found: found[0] not in PREFERRED)
    return candidates[0][0] if candidates else ""


def _pair(format_name: str, path: str, value: object, key: str) -> tuple[tuple[str, str], ...] | None:
    candidates = list(_keys(format_name, path))
    candidates.sort(key=lambda found: (found[0] != key, found[0] not in PREFERRED))
    for name, mark in candidates:
        if "_kwargs." in name:  # a word for it alone would drop what else the mapping holds
            continue
        text = _text(mark, value)
        if text is not None:
            return ((name, text),)
    return None


@lru_cache(maxsize=256)
def _keys(format_name: str, path: str) -> tuple[tuple[str, Key], ...]:
    return tuple(_found(format_name, path))


def _found(format_name: str, path: str) -> Iterator[tuple[str, Key]]:
    for name in _schemas(format_name):
        try:
            marks = marked(name)
        except FileNotFoundError:
            continue
        yield from ((key, mark) for key, mark in marks.items() if mark.path == path)


def _schemas(format_name: str) -> tuple[str, ...]:
    return READS.get(format_name, (format_name,))


def _text(mark: Key, value: object) -> str | None:
    for word, meaning in mark.words:
        if meaning == value:
            return word
    if mark.words:
        return None
    match value:
        case bool():
            return str(value != mark.invert).lower()
        case int() | float():
            return f"{value / mark.scale:g}" if mark.scale != 1 else str(value)
        case str():
            return value
        case _:
            return None


def _written(syntax: str, key: str, text: str) -> str:
    match syntax:
        case "python":
            literal = {"true": "True", "false": "False"}.get(text, text)
            quoted = literal if literal in ("True", "False") or literal.replace(".", "").isdigit() else f'"{literal}"'
            return f"{key}={quoted}"
        case "shell":
            return f"--{key} {'True' if text == 'true' else 'False' if text == 'false' else text}"
        case "toml":
            return f"{key} = {text}"
        case _:
            return f"{key}: {text}"
