"""A model made in bf16 that is trained in fp16, whose largest number its activations pass."""

import re
from collections.abc import Iterator

from trainlint.api import Found, RunView, Value, rule

OVERFLOWING = ("t5", "mt5", "umt5", "gemma", "gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma3n_text")
"""Families whose activations pass 65504, as their users report."""
NAMED = re.compile(r"(?:^|/)(?:flan-|google-)?(u?m?t5|gemma)(?=[-_\d]|$)", re.IGNORECASE)
"""The same families by the names of their repositories, where the model is not known otherwise."""
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
    named = NAMED.search(run.model.id.value) if run.model.id is not None and kind is None else None
    family = kind.value if kind is not None else named[1].lower() if named is not None else ""
    overflows = family in OVERFLOWING
    if not overflows and not (able and stored is not None and stored.value == "bfloat16"):
        return
    if overflows:
        message = f"{family} models were made in bf16: their activations pass 65504, fp16's largest number"
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
