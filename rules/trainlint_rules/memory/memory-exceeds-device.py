"""The run needs more memory than the device has, however kindly it is counted."""

from collections.abc import Iterator

from trainlint.api import (
    Found,
    RunView,
    assumed,
    budget,
    device_words,
    gib,
    memory_help,
    phase_words,
    pressure_spot,
    rule,
)


@rule(severity="error", needs=("device.memory", "memory"))
def check(view: RunView) -> Iterator[Found]:
    memory = budget(view)
    if memory is None or memory.capacity is None:
        return
    need, (_, room) = memory.device_use, memory.capacity
    if need.low <= room:
        return
    likely = f", likely {gib(need.likely)}," if gib(need.likely) != gib(need.low) else ""
    yield Found(
        at=pressure_spot(view, memory),
        message=f"needs at least {gib(need.low)}{likely} {phase_words(memory)}, "
        f"{device_words(view)} has {gib(room)}{assumed(memory)}",
        help=memory_help(view, memory),
        notes=[(view.run.device.name, "the device")],
    )
