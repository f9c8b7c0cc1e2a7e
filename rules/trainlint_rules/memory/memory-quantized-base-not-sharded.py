"""ZeRO-3 over a quantized base: every device holds it whole before anything is partitioned."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, device_words, gib, known, rule, said

LARGE = 12 << 30
"""Bytes of a quantized base from which on a copy on every device is worth a warning where no device is known."""
SHARE = 0.5
"""Share of the device that the base may take before it is one."""


@rule(severity="warning", needs=("quantization.bits", "sharding.kind"))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    bits, kind = run.quantization.bits, run.sharding.kind
    packed = (known(run.quantization.type) or "") in ("nf4", "fp4")
    if bits is None or not bits.written or bits.value != 4 or kind is None or kind.value != "zero3" or not packed:
        return
    if known(run.parallel.world) == 1:
        return
    size, room = _bytes(view), known(run.device.memory)
    heavy = size > SHARE * room if size and room else size >= LARGE or not size
    amount = f", about {gib(size)}," if size else ""
    over = f", {device_words(view)} has {gib(room)}" if size and room and size > room else ""
    yield Found(
        at=bits,
        message=f"`{said(bits)}` under ZeRO-3: the quantized base{amount} is loaded whole in every process and moved "
        f"whole to every device before ZeRO partitions it{over}",
        help="use FSDP with `bnb_4bit_quant_storage` of the compute dtype, which shards while it loads, or ZeRO-2 "
        "where one device holds the base",
        notes=[(kind, "ZeRO-3 is asked for here")],
        severity=None if heavy else "info",
    )


def _bytes(view: RunView) -> int:
    """The base in 4 bits with its scales and the embeddings in 16; 0 where its size is not known."""
    model = view.run.model
    if model.parameters is None:
        return 0
    vocabulary, hidden = known(model.shape.vocab, 0) or 0, known(model.shape.hidden, 0) or 0
    embeddings = vocabulary * hidden * (1 if known(model.shape.tied, False) else 2)
    return int((model.parameters.value - embeddings) * 4.13 / 8 + 2 * embeddings)
