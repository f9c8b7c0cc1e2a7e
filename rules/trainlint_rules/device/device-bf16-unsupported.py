"""bf16 on a GPU that has no units for it: refused by older releases, emulated by later ones."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, Value, known, rule, versions

AMPERE = 8.0
REFUSES = {"transformers": "4.34", "torch": "2.3"}
"""The first release that no longer refuses: until 4.33 transformers asks for compute capability 8.0 itself, since then
it asks torch, which from 2.3 on says yes to emulation (torch.cuda.is_bf16_supported)."""
OWN = ("hf-trainer", "trl", "llamafactory", "axolotl", "python-script", "shell-launcher")


@rule(severity="warning", needs=("device.name", "device.capability"))
def check(view: RunView) -> Iterator[Found]:
    device = view.run.device
    if device.capability is None or device.capability.value >= AMPERE or known(device.cpu_only, False):
        return
    at = _asked(view)
    if at is None:
        return
    refuses = next((name for name in REFUSES if view.root.format in OWN and _older(view, name)), "")
    pinned = view.run.versions.get(refuses)
    what = (
        f"{refuses} {pinned.value} refuses it"
        if pinned is not None
        else "it is emulated, slower than float32; transformers <4.34 and torch <2.3 refuse it"
    )
    name = device.name.value if device.name is not None else "device"
    yield Found(
        at=at,
        message=f"`{at.key}: {at.raw}`, and the {name} (compute capability {device.capability.value}) has no bf16 "
        f"units: {what}",
        help="train in fp16 with loss scaling, or in float32 where the model overflows fp16 (Gemma, T5)",
        notes=[(device.name, "the device")],
        severity="error" if refuses else None,
    )


def _asked(view: RunView) -> Value[bool] | Value[str] | None:
    """The written value that asks for bf16, if the matrix products run in it."""
    precision = view.run.precision
    compute = precision.compute.value if precision.compute is not None else "bfloat16"
    flags = ((precision.bf16, True), (precision.mixed, "bf16"), (precision.compute, "bfloat16"))
    for flag, asks in (*flags, (precision.weights, "bfloat16")):
        if flag is not None and flag.value == asks and flag.place is not None and flag.written:
            return flag if compute == "bfloat16" else None
    return None


def _older(view: RunView, package: str) -> bool:
    """Whether every version that may be installed is one that refuses."""
    value = view.run.versions.get(package)
    allowed = versions.parse(value.value) if value is not None else None
    highest, first = allowed.highest if allowed is not None else None, versions.version(REFUSES[package])
    return highest is not None and first is not None and highest < first
