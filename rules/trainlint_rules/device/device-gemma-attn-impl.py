"""Gemma 2 or 3 in fp16 on a device without bf16; Gemma 2 with a kernel that leaves out its soft cap."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, Value, known, rule, said

WIDE = {"gemma2": "Gemma 2", "gemma3": "Gemma 3", "gemma3_text": "Gemma 3", "gemma3n": "Gemma 3n"}
"""Families trained in bf16 whose residual stream exceeds 65504, the largest fp16 number."""
BF16 = 8.0


@rule(severity="warning", needs=("model.type",))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    family = WIDE.get(known(run.model.type, "") or "")
    if family is None or known(run.device.cpu_only, False):
        return
    half, device, own = _half(view), run.device.name, known(run.kernels) == "unsloth"  # which casts up where it has to
    if half is not None and device is not None and not own and (known(run.device.capability) or BF16) < BF16:
        yield Found(
            at=half,
            message=f"`{said(half)}` on the {device.value}: activations of {family} exceed 65504, the largest number "
            "of fp16, so that the loss is 0 or NaN, and the device has no bf16 units",
            help="train in float32 there, or in bf16 on Ampere or later",
            notes=[(run.model.id, "the model"), (device, "the device")],
        )
    kernel = run.attention
    if family == "Gemma 2" and kernel is not None and kernel.written and kernel.value == "sdpa":
        yield Found(
            at=kernel,
            message=f"`{said(kernel)}`: {family} caps its attention scores, PyTorch's kernel leaves the cap out: "
            "another model is trained than the one that was pretrained",
            help="use `eager`, or FlashAttention 2.6.3 or later, which has the cap",
            notes=[(run.model.id, "the model")],
        )


def _half(view: RunView) -> Value[bool] | Value[str] | None:
    """What asks for fp16."""
    precision = view.run.precision
    flags = ((precision.fp16, True), (precision.mixed, "fp16"), (precision.weights, "float16"))
    for flag, word in flags:
        if flag is not None and flag.value == word and flag.written:
            return flag
    return None
