"""An unquoted no, off, yes or on where a word is wanted: YAML 1.1 makes it a boolean."""

from collections.abc import Iterator

from trainlint.api import FileView, Found, Scalar, Severity, rule, set_value

TRAINER = ("eval_strategy", "evaluation_strategy", "save_strategy", "logging_strategy")
WORDS: dict[str, tuple[str, ...]] = {
    "hf-trainer": TRAINER,
    "trl": TRAINER,
    "ms-swift": (),
    "axolotl": ("eval_strategy", "evaluation_strategy", "save_strategy"),
    "llamafactory": (*TRAINER, "flash_attn"),
    "accelerate": ("mixed_precision", "distributed_type"),
}
"""Keys that take one of some words, `no` or `off` among them."""
SPELLINGS = ("no", "off", "yes", "on")


@rule(severity="error", on="file", formats=tuple(WORDS), outranks=("schema-wrong-type",))
def check(view: FileView) -> Iterator[Found]:
    fragment = view.fragment
    for key in WORDS[fragment.format]:
        entry = fragment.entry(key)
        node = entry.value if entry is not None else None
        if not isinstance(node, Scalar) or not node.plain or not isinstance(node.value, bool):
            continue
        if node.raw.lower() not in SPELLINGS:
            continue
        read = "true" if node.value else "false"
        message = f"`{key}: {node.raw}` is the boolean {read} to YAML, not the word `{node.raw}`"
        severity: Severity = "error"
        if fragment.format == "accelerate" and not node.value:
            message += "; accelerate takes it for `no`, other readers of the file do not"
            severity = "info"
        yield Found(
            at=node,
            message=message,
            help=f'quote it: `{key}: "{node.raw}"`',
            fix=set_value(node, f'"{node.raw}"', "safe"),
            severity=severity,
        )
