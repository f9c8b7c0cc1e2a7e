"""A number in quotes, where the reader keeps it a text."""

import re
from collections.abc import Iterator

from trainlint.api import Entry, FileView, Found, Scalar, history, rule, set_value

DEEPSPEED = (
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "gradient_clipping",
    "steps_per_print",
    "optimizer.params.lr",
    "optimizer.params.eps",
    "optimizer.params.weight_decay",
    "scheduler.params.warmup_num_steps",
    "scheduler.params.warmup_max_lr",
    "scheduler.params.total_num_steps",
)
"""Keys that DeepSpeed compares and multiplies as they are; the ZeRO block is converted."""
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
CONVERTS = ("_target_", "defaults", "hydra")


@rule(severity="warning", on="file", formats=("deepspeed", "hf-trainer", "llamafactory"))
def check(view: FileView) -> Iterator[Found]:
    fragment = view.fragment
    if any(fragment.entry(key) for key in CONVERTS):
        return
    reader = {"deepspeed": "DeepSpeed", "llamafactory": "LLaMA-Factory"}.get(fragment.format, "`HfArgumentParser`")
    for key, entry in _numbers(view):
        node = entry.value
        if not isinstance(node, Scalar) or node.plain or not isinstance(node.value, str):
            continue
        text = node.value.strip()
        if not NUMBER.fullmatch(text):
            continue
        yield Found(
            at=node,
            message=f"`{key}: {node.raw}` is a text, and {reader} makes no number of it: it differs from "
            f"{text} in comparisons",
            help=f"write `{text}` without quotes",
            fix=set_value(node, _number(text), "safe"),
        )


def _numbers(view: FileView) -> Iterator[tuple[str, Entry]]:
    """The keys that must be numbers, as far as they are written."""
    if view.fragment.format == "deepspeed":
        for key in DEEPSPEED:
            entry = view.fragment.entry(key)
            if entry is not None:
                yield key, entry
        return
    quoted = [
        (key, entry)
        for key, entry in view.fragment.keys.items()
        if "." not in key and isinstance(entry.value, Scalar) and isinstance(entry.value.value, str)
        if not entry.value.plain and NUMBER.fullmatch(entry.value.value.strip())
    ]
    if not quoted:
        return
    known = history.framework("transformers").section("TrainingArguments")
    for key, entry in quoted:
        found = known.own(key)
        if found is not None and found.types and {"int", "float"} >= set(found.types) - {"null"}:
            yield key, entry


def _number(text: str) -> str:
    """As YAML 1.1 reads a number too: with a point before the exponent, and its sign."""
    mantissa, mark, power = re.sub("E", "e", text).partition("e")
    if not mark:
        return text
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{power if power[0] in '+-' else '+' + power}"
