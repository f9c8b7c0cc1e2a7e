"""DeepSpeed's buckets, which are counted in elements, take a good part of a small device."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, budget, device_words, gib, known, rule

SHARE = 0.1
"""Share of the device that buckets may take."""
SMALLER = (200_000_000, 100_000_000, 50_000_000, 20_000_000)
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@rule(severity="warning", needs=("device.memory", "sharding.kind"))
def check(view: RunView) -> Iterator[Found]:
    run, sharding = view.run, view.run.sharding
    bucket, kind, room = sharding.reduce_bucket, sharding.kind, run.device.memory
    if room is None or kind is None or kind.value not in ("zero1", "zero2", "zero3"):
        return
    elements = bucket.value if bucket is not None else 5e8
    overlap, low = known(sharding.overlap_comm, kind.value == "zero3"), _bytes(view)
    copies = 2 if overlap and kind.value != "zero3" else 1
    size = int(elements * low * copies)
    chosen = any(value is not None and value.written for value in (bucket, sharding.overlap_comm))
    memory = budget(view)
    fits = memory is not None and memory.verdict == "fits"
    at = next((value for value in (bucket, sharding.overlap_comm) if value is not None and value.place), kind)
    if size <= SHARE * room.value or fits or not chosen or at.place is None:
        return
    key = bucket.key if bucket is not None and bucket.key else "reduce_bucket_size"
    name = key.rpartition(".")[2]
    fitting = next((step for step in SMALLER if step * low * copies <= SHARE * room.value), SMALLER[-1])
    times = f" x {copies} buffers (`overlap_comm`)" if copies > 1 else ""
    default = "" if bucket is not None and bucket.written else ", the default,"
    yield Found(
        at=at,
        message=f"`{name}` of {elements:.0e}{default} is {gib(size)}: elements x {low} bytes{times}, "
        f"{100 * size / room.value:.0f} % of the {gib(room.value)} that {device_words(view)} has",
        help=f"set `{name}` to {fitting:.0e} ({gib(fitting * low * copies)})",
        notes=[(run.device.name, "the device")],
    )


def _bytes(view: RunView) -> int:
    """Bytes of an element: the engine's dtype, 16 bits where it is not known."""
    return BYTES.get(known(view.run.precision.compute) or "", 2)
