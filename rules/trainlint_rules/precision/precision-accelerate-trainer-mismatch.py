"""The launcher's mixed precision is not that of the trainer's own flag, which wins."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, rule, said

FORMATS = ("hf-trainer", "trl", "llamafactory", "axolotl", "ms-swift", "python-script", "shell-launcher")


@rule(severity="warning", formats=FORMATS, needs=("precision.mixed",))
def check(view: RunView) -> Iterator[Found]:
    precision = view.run.precision
    mixed = precision.mixed
    if mixed is None or not mixed.written or mixed.value == "no":
        return
    for word, flag in (("bf16", precision.bf16), ("fp16", precision.fp16)):
        if flag is not None and flag.value and flag.written and mixed.value != word:
            yield Found(
                at=mixed,
                message=f"`{said(mixed)}` loses against the trainer's own `{said(flag)}`",
                help="write the same precision in both files",
                notes=[(flag, "the trainer's flag")],
            )
            return
