"""`group_by_length` under a transformers that calls it `train_sampling_strategy`."""

from collections.abc import Iterator

from trainlint.api import Edit, Fix, Found, RunView, departed, installed, rule, said

FORMATS = ("hf-trainer", "trl", "llamafactory", "python-script", "shell-launcher")
OLD, NEW = "group_by_length", "train_sampling_strategy"


@rule(severity="error", formats=FORMATS, outranks=("schema-unknown-key", "schema-tf5-removed"))
def check(view: RunView) -> Iterator[Found]:
    if installed(view.run.versions, "transformers")[1] is None:
        return
    for gone in departed(view.root, view.run.versions, "transformers", "TrainingArguments"):
        if gone.entry.name != OLD or not gone.certain:
            continue
        on = getattr(gone.entry.value, "value", None) in (True, "true", "True")
        plain = view.root.document.syntax == "yaml"
        edits = (Edit(gone.entry.key.place, NEW), Edit(gone.entry.value.place, OLD if on else "random"))
        yield Found(
            at=gone.entry.key,
            message=f"`{said(gone.entry)}` is gone since transformers {gone.left}, this is {gone.release}",
            help=f"write `{NEW}: {OLD}`" if on else "remove it: samples are shuffled by default",
            notes=[(gone.pin, "the release")],
            fix=Fix(edits, "safe", f"write `{NEW}`") if plain else None,
        )
