"""`warmup_ratio` under transformers 5: first it warns, then the key is gone."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, departed, installed, rename_key, rule, said, since

FORMATS = ("hf-trainer", "trl", "llamafactory", "python-script", "shell-launcher")
NAME = "warmup_ratio"


@rule(severity="error", formats=FORMATS, outranks=("schema-unknown-key",))
def check(view: RunView) -> Iterator[Found]:
    entry, versions = view.root.entry(NAME), view.run.versions
    new = since(versions, "transformers", "5.0")
    _, pin = installed(versions, "transformers")
    if entry is None or pin is None or new is False or view.root.facts.get("own_loop"):
        return
    gone = [one for one in departed(view.root, versions, "transformers", "TrainingArguments") if one.entry is entry]
    certain = bool(gone) and gone[0].certain
    if not certain and not new:
        return  # a release before 5 may be the one
    release = gone[0].release if gone else f"transformers {pin.value}"
    fix = rename_key(entry, "warmup_steps") if "warmup_steps" not in view.root.keys and new else None
    yield Found(
        at=entry.key,
        message=f"`{said(entry)}` is gone with transformers 5.15, this is {release}"
        if certain
        else f"`{NAME}` goes away with transformers 5.15: `warmup_steps` takes a share since 5.0",
        help=f"write `{said(entry).replace(NAME, 'warmup_steps')}`",
        notes=[(pin, "the release")],
        fix=fix if view.root.format not in ("python-script", "shell-launcher") else None,
        severity=None if certain else "info",
    )
