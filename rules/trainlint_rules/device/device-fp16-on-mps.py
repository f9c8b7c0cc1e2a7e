"""fp16 mixed precision on Apple silicon with a torch that has no loss scaling there."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, Value, devices, known, rule, said, since

SCALES = "2.8"
"""The first torch whose GradScaler runs on Metal (`_amp_foreach_non_finite_check_and_unscale_`)."""
ALLOWS = {"transformers": "4.42", "accelerate": "1.11"}
"""The first releases that do not refuse fp16 off CUDA (training_args.py, accelerator.py)."""


TRAINERS = ("hf-trainer", "trl", "llamafactory", "axolotl", "ms-swift", "python-script", "shell-launcher", "accelerate")


@rule(severity="warning", needs=("device.name",), formats=TRAINERS)
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    found = devices.find(known(run.device.name) or "")
    asked = _asked(view)
    if found is None or found.vendor != "apple" or asked is None or known(run.device.cpu_only, False):
        return
    refuses = next((name for name, first in ALLOWS.items() if since(run.versions, name, first) is False), "")
    scales = since(run.versions, "torch", SCALES)
    if scales and not refuses:
        return
    pinned = run.versions.get(refuses or "torch")
    release = f"{refuses or 'torch'} {pinned.value}" if pinned is not None else ""
    if refuses:
        what = f"{release or f'{refuses} before {ALLOWS[refuses]}'} refuses it"
    else:
        what = f"{release if release and scales is False else f'torch before {SCALES}'} has no loss scaling on Metal"
    yield Found(
        at=asked,
        message=f"`{said(asked)}` on the {found.name}: {what}",
        help=f"use torch {SCALES} with accelerate {ALLOWS['accelerate']} or later, or train in float32",
        notes=[(run.device.name, "the device"), (pinned, "the release")],
        severity="error" if refuses else "warning" if scales is False else "info",
    )


def _asked(view: RunView) -> Value[bool] | Value[str] | None:
    precision = view.run.precision
    for flag, word in ((precision.fp16, True), (precision.mixed, "fp16")):
        if flag is not None and flag.value == word and flag.written:
            return flag
    return None
