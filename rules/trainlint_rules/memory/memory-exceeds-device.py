"""The run needs more memory than the device has, however kindly it is counted."""

from collections.abc import Iterator

from trainlint.api import (
    Found,
    RunView,
    assumed,
    at_length,
    budget,
    chosen_length,
    device_words,
    gib,
    may_be_sharded,
    memory_advice,
    phase_words,
    pressure_spot,
    rule,
    sharded,
)


@rule(severity="error", needs=("device.memory", "memory"))
def check(view: RunView) -> Iterator[Found]:
    memory = budget(view)
    if memory is None or memory.capacity is None or memory.device_use.likely <= memory.capacity[1]:
        return
    room, length = memory.capacity[1], view.run.length.max
    full, subject = at_length(view, memory), ""
    by_length = memory.device_use.low <= room
    if by_length:
        memory = full
        subject = f"a batch of samples of {length.value} tokens " if length is not None else ""
    need = memory.device_use
    if need.low <= room:
        return
    spread = sharded(view, memory) if may_be_sharded(view) else None
    unsure = spread is not None and spread.device_use.low <= room
    likely = f", likely {gib(need.likely)}," if gib(need.likely) != gib(need.low) else ""
    help_, fix = memory_advice(view, full)
    yield Found(
        at=pressure_spot(view, memory),
        message=f"{subject}needs at least {gib(need.low)}{likely} {phase_words(memory)}, "
        f"{device_words(view)} has {gib(room)}{', unless a launcher shards it' * unsure}{assumed(memory)}",
        help=help_,
        fix=fix,
        notes=[(view.run.device.name, "the device")],
        severity="info" if by_length and not chosen_length(view) else "warning" if by_length or unsure else None,
    )
