"""fp16 mixed precision on a processor: refused by older releases, without loss scaling or without effect since."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, Value, known, rule, said, since

CHECKS = "4.42"
"""The first transformers that no longer refuses fp16 off the GPU by itself (training_args.py)."""
CASTS = "2.3"
"""The first torch with fp16 autocast on processors; transformers refuses before it (trainer.py)."""


TRAINERS = ("hf-trainer", "trl", "llamafactory", "axolotl", "ms-swift", "python-script", "shell-launcher", "accelerate")


@rule(severity="warning", needs=("device.cpu_only",), formats=TRAINERS)
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    asked = _asked(view)
    if asked is None or not known(run.device.cpu_only, False):
        return
    trainer = view.root.format != "accelerate"
    transformers, torch = since(run.versions, "transformers", CHECKS), since(run.versions, "torch", CASTS)
    refuses = "transformers" if transformers is False else "torch" if torch is False else ""
    pinned = run.versions.get(refuses)
    if trainer and refuses and pinned is not None:
        what = f"{refuses} {pinned.value} refuses it"
    elif trainer:
        what = f"transformers before {CHECKS} and torch before {CASTS} refuse it, later ones train without loss scaling"
    else:
        what = "accelerate leaves it out without a word and trains in float32"
    yield Found(
        at=asked,
        message=f"`{said(asked)}` on the CPU: {what}",
        help="train in bf16 or float32",
        notes=[(run.device.cpu_only, "trains on the CPU")],
        severity="error" if trainer and refuses else None,
    )


def _asked(view: RunView) -> Value[bool] | Value[str] | None:
    precision = view.run.precision
    for flag, word in ((precision.fp16, True), (precision.mixed, "fp16")):
        if flag is not None and flag.value == word and flag.written:
            return flag
    return None
