"""A 4-bit base without the dtype that it computes in, which is then float32."""

from collections.abc import Iterator

from trainlint.api import Edit, Entry, Fix, Found, RunView, rule

NAME = "bnb_4bit_compute_dtype"


@rule(severity="warning", formats=("python-script",), needs=("quantization.bits",))
def check(view: RunView) -> Iterator[Found]:
    run, calls = view.run, view.root.facts.get("calls")
    if not view.root.launches or not isinstance(calls, tuple) or (run.kernels and run.kernels.value == "unsloth"):
        return
    if NAME in view.root.document.text:  # given to another call, or set later
        return
    for call in calls:
        if call.short not in ("BitsAndBytesConfig", "from_pretrained") or call.open or "Fast" in call.receiver:
            continue
        entry = call.keywords.entry("load_in_4bit")
        if entry is None or getattr(entry.value, "value", None) is not True:
            continue
        autocast = run.precision.autocast
        yield Found(
            at=entry,
            message=f"`load_in_4bit` without `{NAME}`: its default is float32, so 4-bit weights are expanded "
            "to 4 bytes each and activations are cast around every layer",
            help=f"pass `{NAME}=torch.bfloat16` (`torch.float16` before Ampere)",
            fix=_given(entry) if call.short == "BitsAndBytesConfig" else None,
            severity="info" if autocast is not None and autocast.value else "warning",
        )


def _given(entry: Entry) -> Fix:
    """The argument behind `load_in_4bit=True`."""
    place = entry.value.place
    behind = place._replace(line=place.end_line, column=place.end_column)
    return Fix((Edit(behind, f", {NAME}=torch.bfloat16"),), "unsafe", f"pass `{NAME}`")
