"""A model made in bf16 that is trained in fp16, whose largest number its activations pass."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, Value, rule

OVERFLOWING = ("t5", "mt5", "umt5", "gemma", "gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma3n_text")
"""Families whose activations pass 65504, as their users report."""
SURE = 8.0
"""From this compute capability on a device has bf16 in hardware."""


@rule(severity="warning")
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    asked: Value[bool] | Value[str] | None = run.precision.fp16
    if asked is None or not asked.value:
        asked, mixed = None, run.precision.mixed
        if mixed is not None and mixed.value == "fp16" and not (run.precision.bf16 and run.precision.bf16.value):
            asked = mixed
    kind, stored, capability = run.model.type, run.model.dtype, run.device.capability
    if asked is None or asked.place is None or run.evaluation.only:
        return
    able = capability is not None and capability.value >= SURE
    overflows = kind is not None and kind.value in OVERFLOWING
    if not overflows and not (able and stored is not None and stored.value == "bfloat16"):
        return
    if overflows and kind is not None:
        message = f"{kind.value} models were made in bf16: their activations pass 65504, fp16's largest number"
    else:
        message = "the checkpoint is stored in bf16, whose range fp16 does not have"
    unable = capability is not None and not able
    other = f"`{asked.key}: bf16`" if asked.key.endswith("mixed_precision") else "`bf16: true`"
    yield Found(
        at=asked,
        message=f"`{asked.key}: {asked.raw or 'true'}`: {message}",
        help="train in float32: this device has no bf16" if unable else f"set {other} in its place",
        notes=[(run.model.id, "the model"), (run.device.name, "the device")],
        severity="warning" if overflows else "info",
    )
