"""Code from the Hub is run at whatever state it is in on the day."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, models, rule, said

FORMATS = ("hf-trainer", "trl", "llamafactory", "axolotl", "python-script", "shell-launcher")
REVISIONS = ("model_revision", "revision", "revision_of_model", "code_revision")


@rule(severity="info", needs=("model.id",), formats=FORMATS)
def check(view: RunView) -> Iterator[Found]:
    root, model = view.root, view.run.model.id
    entry = root.entry("trust_remote_code")
    if model is None or entry is None or getattr(entry.value, "value", None) not in (True, "true", "True"):
        return
    if any(root.written(name) not in (None, "main") for name in REVISIONS):
        return
    name = model.value
    if name.count("/") != 1 or name.startswith((".", "/", "~")) or "$" in name or models.find(name) is not None:
        return  # a folder, or a model whose code is in transformers
    if view.fragment("model-config") is not None:
        return
    yield Found(
        at=entry.value,
        message=f"`{said(entry)}` runs the code in `{name}` as it is on the day: it may change between two runs",
        help="pin it with " + ("`revision_of_model`" if root.format == "axolotl" else "`model_revision`"),
        notes=[(model, "the model")],
    )
