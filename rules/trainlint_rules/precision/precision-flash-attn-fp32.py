"""FlashAttention handed float32, which its kernels do not take."""

import re
from collections.abc import Iterator

from trainlint.api import Found, RunView, rule, written

CAST = re.compile(r"\.half\(|\.bfloat16\(|\.to\([^)\n]*(bfloat16|float16|half)|set_default_dtype")
"""Words of a script that casts the model itself."""
FORMATS = ("hf-trainer", "trl", "python-script", "shell-launcher", "llamafactory", "axolotl")


@rule(severity="error", formats=FORMATS, needs=("attention",))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    attention, compute, autocast = run.attention, run.precision.compute, run.precision.autocast
    if attention is None or attention.value != "flash" or not attention.written or attention.place is None:
        return
    if (autocast is not None and autocast.value) or (run.device.cpu_only is not None and run.device.cpu_only.value):
        return
    if any(f.format == "python-script" and CAST.search(f.document.text) for f in view.fragments):
        return
    options = run.possible.get("precision.compute", ())
    old = next((option for option in options if option.value == "float32" and "<5" in option.note), None)
    certain = compute is not None and compute.value == "float32"
    if not certain and (old is None or autocast is None):
        return
    word = attention.raw.strip("\"'") or written(attention.value)
    when = "" if certain or old is None else f" (with {old.note})"
    yield Found(
        at=attention,
        message=f"`{attention.key}: {word}` with float32{when}: FlashAttention computes in fp16 and bf16 only",
        help="set `bf16: true` (`fp16: true` before Ampere), or load the model in bfloat16",
        notes=[(run.precision.weights, "the weights are float32")],
        severity="error" if certain else "info",
    )
