"""`device_map` over a quantized model that the devices do not hold: bitsandbytes refuses what is left for the host."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, device_words, gib, known, rule, said

OVERHEAD = {4: 4.13, 8: 8.02}
"""Bits of a quantized weight with its scales: blocks of 64 with doubly quantized scales; one scale a row."""
KINDS = ("nf4", "fp4", "int8")


@rule(severity="error", needs=("sharding.kind", "quantization.bits", "device.memory", "model.parameters"))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    kind, bits, room = run.sharding.kind, run.quantization.bits, run.device.memory_high or run.device.memory
    if kind is None or kind.value != "device-map" or kind.place is None or bits is None or room is None:
        return
    if (known(run.quantization.type) or "") not in KINDS or bits.value not in OVERHEAD or _allowed(view):
        return
    count = known(run.device.count)
    if count is None or known(run.device.unified, False):
        return
    size, every = _bytes(view, OVERHEAD[bits.value]), count * room.value
    if size <= every:
        return
    yield Found(
        at=kind,
        message=f"`{said(kind)}` over a base of {gib(size)} in {bits.value} bit, {device_words(view)} has "
        f"{gib(room.value)}{f', {count} of them {gib(every)}' if count > 1 else ''}: modules are left for the host, "
        "and bitsandbytes refuses to load them there",
        help="train a smaller model, or on more devices: offloaded weights do not train",
        notes=[(run.model.id, "the model"), (bits, "the bits"), (run.device.name, "the device")],
    )


def _allowed(view: RunView) -> bool:
    """Whether modules on the host are asked for."""
    return any("fp32_cpu_offload" in fragment.document.text for fragment in view.fragments)


def _bytes(view: RunView, width: float) -> int:
    """Linear layers quantized, embeddings and output head in 16 bit."""
    model = view.run.model
    count = known(model.parameters, 0) or 0
    vocabulary, hidden = known(model.shape.vocab, 0) or 0, known(model.shape.hidden, 0) or 0
    embeddings = vocabulary * hidden * (1 if known(model.shape.tied, False) else 2)
    return int((count - embeddings) * width / 8 + 2 * embeddings)
