"""The run needs more memory than the device has, however kindly it is counted."""

from collections.abc import Iterator

from trainlint.api import (
    Found,
    RunView,
    assumed,
    budget,
    chosen_length,
    device_words,
    gib,
    memory_help,
    phase_words,
    pressure_spot,
    reaches_length,
    rule,
    shortest,
)


@rule(severity="error", needs=("device.memory", "memory"))
def check(view: RunView) -> Iterator[Found]:
    full = budget(view)
    if full is None or full.capacity is None or full.device_use.low <= full.capacity[1]:
        return
    room, length = full.capacity[1], view.run.length.max
    bare = full if reaches_length(view) else shortest(view, full) or full
    by_length = bare.device_use.low <= room
    memory = full if by_length else bare
    need, subject = memory.device_use, ""
    if by_length and length is not None:
        subject = f"a batch of samples of {length.value} tokens "
    likely = f", likely {gib(need.likely)}," if gib(need.likely) != gib(need.low) else ""
    yield Found(
        at=pressure_spot(view, memory),
        message=f"{subject}needs at least {gib(need.low)}{likely} {phase_words(memory)}, "
        f"{device_words(view)} has {gib(room)}{assumed(memory)}",
        help=memory_help(view, full),
        notes=[(view.run.device.name, "the device")],
        severity=None if not by_length else "warning" if chosen_length(view) else "info",
    )
