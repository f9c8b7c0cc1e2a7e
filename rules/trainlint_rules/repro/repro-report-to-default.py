"""`report_to` is empty, which is every tracker that is installed before transformers 5."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, Scalar, installed, rule, said, set_value, since

FORMATS = ("hf-trainer", "trl", "llamafactory", "python-script", "shell-launcher")


@rule(severity="info", formats=FORMATS)
def check(view: RunView) -> Iterator[Found]:
    entry = view.root.entry("report_to")
    node = entry.value if entry is not None else None
    if entry is None or not isinstance(node, Scalar) or view.root.facts.get("own_loop"):
        return
    python = view.root.format == "python-script"
    none = '"none"' if python else "none"
    fix = set_value(node, none)
    if node.value == "None":
        yield Found(
            at=node,
            message=f"`{said(entry)}` is a word that is no tracker: the Trainer refuses it",
            help=f"write `{none}`",
            fix=fix,
            severity="error",
        )
    elif node.value is None:
        new = since(view.run.versions, "transformers", "5.0")
        if new:
            return
        _, pin = installed(view.run.versions, "transformers")
        yield Found(
            at=node,
            message=f"`{said(entry)}` means every tracker that is installed"
            + ("" if new is False else " before transformers 5")
            + ": one that wants a login stops the job",
            help=f"write `{none}`, or name the tracker",
            notes=[(pin, "the release")],
            fix=fix,
        )
