"""mlx-lm's `lora_layers`, which is `num_layers` and ignored under its old name."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, rename_key, rule, said, since

DEFAULT = 16


@rule(severity="error", formats=("mlx-lm",), outranks=("schema-unknown-key",))
def check(view: RunView) -> Iterator[Found]:
    entry, new = view.root.entry("lora_layers"), since(view.run.versions, "mlx-lm", "0.19.3")
    if entry is None or new is False:
        return
    beside = view.root.entry("num_layers")
    same = beside is None and getattr(entry.value, "value", None) == DEFAULT
    taken = beside.value if beside is not None else None
    yield Found(
        at=entry.key,
        message=f"`{said(entry)}` is ignored since mlx-lm 0.19: "
        + (f"`{said(beside)}` counts" if beside is not None else f"the last {DEFAULT} blocks train, its default"),
        help="write `num_layers`",
        notes=[(view.run.versions.get("mlx-lm"), "the release"), (taken, "this counts")],
        fix=rename_key(entry, "num_layers", "safe" if new else "unsafe") if beside is None else None,
        severity="info" if same else None if new else "warning",
    )
