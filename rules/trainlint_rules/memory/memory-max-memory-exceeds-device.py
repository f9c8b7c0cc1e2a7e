"""A `max_memory` map lets the loader put more on a device than the device has."""

import re
from collections.abc import Iterator, Mapping

from trainlint.api import Found, RunView, device_words, gib, rule

SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])(i?)([Bb])?", re.IGNORECASE)
POWERS = {"K": 1, "M": 2, "G": 3, "T": 4}


@rule(severity="warning", needs=("device.limit", "device.memory"))
def check(view: RunView) -> Iterator[Found]:
    device = view.run.device
    limit, memory = device.limit, device.memory_high or device.memory
    if limit is None or memory is None or memory.value <= 0:
        return
    over = {name: size for name, size in _limits(limit.value) if size > memory.value}
    if not over:
        return
    name, size = max(over.items(), key=lambda item: item[1])
    where = f" for device {name}" if name else ""
    yield Found(
        at=limit,
        message=f"`{limit.key}` allows {gib(size)}{where}, {device_words(view)} has {gib(memory.value)}: "
        "loading fills the device and the first step finds no room",
        help=f"set `{limit.key}` to about {gib(0.85 * memory.value)}, and leave the rest to activations and optimizer",
        notes=[(device.name, "the device")],
    )


def _limits(value: object) -> Iterator[tuple[str, float]]:
    """Device and bytes. accelerate takes sizes in text or bytes; a bare number for all devices is Axolotl's, in GiB."""
    match value:
        case Mapping():
            for name, size in value.items():
                number = _bytes(size)
                if str(name).isdigit() and number is not None:
                    yield str(name), number
        case bool():
            return
        case int() | float():
            yield "", value * (1 << 30)
        case str() if (number := _bytes(value)) is not None:
            yield "", number


def _bytes(value: object) -> float | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None
    unit: float = (1024 if found[3] else 1000) ** POWERS[found[2].upper()]
    return float(found[1]) * unit / (8 if found[4] == "b" and not found[3] else 1)
