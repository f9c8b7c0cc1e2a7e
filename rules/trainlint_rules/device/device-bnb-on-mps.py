"""bitsandbytes where it has no kernels: Apple silicon, and processors with an old release."""

import re
from collections.abc import Iterator

from trainlint.api import Found, RunView, Value, devices, known, rule, said, since

BLOCKWISE = re.compile(r".*(_8bit|_bnb_8bit|_4bit|8bit_lr)|paged_.*")
OTHERS = ("adamw_torch_8bit", "adamw_torch_4bit")
"""8-bit optimizers that are torchao's, not bitsandbytes'."""
TYPES = ("nf4", "fp4", "int8")
PORTABLE = "0.46"
"""The first release whose operators are no longer CUDA's alone: it runs on processors, on Metal later and slower."""


@rule(severity="warning", needs=("device.name",))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    found = devices.find(known(run.device.name) or "")
    apple = found is not None and found.vendor == "apple"
    portable = since(run.versions, "bitsandbytes", PORTABLE)
    asked = _asked(view)
    if asked is None or not (apple or (known(run.device.cpu_only, False) and portable is False)):
        return
    where = f"the {found.name}" if apple and found is not None else "the CPU"
    old = portable is False
    pinned = run.versions.get("bitsandbytes")
    what = f"bitsandbytes {pinned.value} runs on CUDA alone" if old and pinned else "bitsandbytes is made for CUDA"
    yield Found(
        at=asked,
        message=f"`{said(asked)}` on {where}: {what}{'' if old else ', releases before 0.46 stop while loading'}",
        help="train with MLX on a checkpoint that it quantized, or load in 16 bit"
        if apple
        else f"use bitsandbytes {PORTABLE} or later, or load in 16 bit",
        notes=[(run.device.name, "the device")],
        severity="error" if old else None,
    )


def _asked(view: RunView) -> Value[int] | Value[str] | None:
    """What asks for bitsandbytes: weights packed by it, or one of its optimizers."""
    bits, kind, optimizer = view.run.quantization.bits, view.run.quantization.type, view.run.optimizer.name
    if bits is not None and bits.written and bits.value in (4, 8) and (known(kind) or "") in TYPES:
        return bits
    if optimizer is None or not optimizer.written or optimizer.value in OTHERS or view.root.format == "mlx-lm":
        return None
    return optimizer if BLOCKWISE.fullmatch(optimizer.value) else None
