"""`warmup_steps` below one: a share of the steps from transformers 5 on, less than a step before."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, installed, rename_key, rule, said, since

FORMATS = ("hf-trainer", "trl", "llamafactory", "axolotl", "python-script", "shell-launcher")


@rule(severity="error", needs=("schedule.warmup_steps",), formats=FORMATS)
def check(view: RunView) -> Iterator[Found]:
    run, steps = view.run, view.run.schedule.warmup_steps
    if steps is None or not steps.written or not 0 < steps.value < 1:
        return
    name = steps.key.rpartition(".")[2].lstrip("-")
    if name != "warmup_steps":
        return
    share = since(run.versions, "transformers", "5.0")
    refused = since(run.versions, "transformers", "4.46")
    own = view.root.format == "axolotl"  # a whole number in its schema, whatever transformers takes
    if share and not own:
        return
    _, pin = installed(run.versions, "transformers")
    if own:
        message = f"`{said(steps)}` is refused: Axolotl counts whole steps there"
    elif share is None:
        message = f"`{said(steps)}` is a share of the steps from transformers 5 on; before it is less than one step"
    else:
        does = "refuses a part of a step" if refused else "takes it as less than one step: there is no warmup"
        release = pin.value if pin is not None and pin.key == "transformers" else ""
        message = f"`{said(steps)}` is no share yet: transformers {release or 'before 5'} {does}"
    entry = view.root.entry(name)
    ratio = view.root.entry("warmup_ratio")
    yield Found(
        at=steps,
        message=message,
        help=f"write `warmup_ratio: {steps.raw}`" if share is not None or own else "pin transformers, or write a ratio",
        notes=[(pin, "the release")],
        fix=rename_key(entry, "warmup_ratio") if entry and not ratio and _plain(view) and (own or not share) else None,
        severity=None if share is not None or own else "info",
    )


def _plain(view: RunView) -> bool:
    return view.root.format not in ("python-script", "shell-launcher")
