"""`evaluation_strategy` or `eval_strategy` under a transformers that does not know the name."""

from collections.abc import Iterator, Mapping

from trainlint.api import Found, RunView, Value, history, rename_key, rule, versions

OLD, NEW = "evaluation_strategy", "eval_strategy"
FORMATS = ("hf-trainer", "trl", "llamafactory", "ms-swift", "python-script", "shell-launcher")


@rule(severity="error", needs=("evaluation.strategy",), formats=FORMATS, outranks=("schema-unknown-key",))
def check(view: RunView) -> Iterator[Found]:
    value = view.run.evaluation.strategy
    name = value.key.rpartition(".")[2].lstrip("-") if value is not None and value.written else ""
    if value is None or name not in (OLD, NEW):
        return
    installed = _transformers(view.run.versions)
    key = history.framework("transformers").section("TrainingArguments")[name]
    other = NEW if name == OLD else OLD
    pin = view.run.versions.get("transformers")
    release = f"transformers {pin.value}" if pin is not None else "the transformers this run asks for"
    entry = next((found for fragment in view.fragments if (found := fragment.entry(value.key))), None)
    notes = [(pin, "the version")]
    fix = rename_key(entry, other) if entry is not None else None
    at = value if entry is None else entry.key
    if installed is not None and key.known_in(installed) is False:
        message = f"`{name}` is not in {release}: it is `{NEW}` from 4.41 on, and `{OLD}` is gone from {_gone()} on"
        yield Found(at=at, message=message, help=f"write `{other}`", notes=notes, fix=fix)
    elif name == OLD and (installed is None or key.known_in(installed) is None):
        message = f"`{OLD}` is `{NEW}` since transformers 4.41, and gone from {_gone()} on"
        yield Found(at=at, message=message, help=f"write `{NEW}`", notes=notes, severity="info")


def _gone() -> str:
    removed = history.framework("transformers").section("TrainingArguments")[OLD].removed_in or ""
    return removed.removesuffix(".0")


def _transformers(known: Mapping[str, Value[str]]) -> versions.VersionRange | None:
    """The releases of transformers that are pinned, or that the pinned framework asks for."""
    if "transformers" in known:
        return versions.parse(known["transformers"].value)
    for package in ("trl", "llamafactory"):
        pin = versions.parse(known[package].value) if package in known else None
        if pin is not None:
            return history.framework(package).companion("transformers", pin)
    return None
