"""The run would need more of a Mac's unified memory than Metal lets the GPU use."""

from collections.abc import Iterator

from trainlint.api import (
    Found,
    RunView,
    assumed,
    at_length,
    budget,
    chosen_length,
    devices,
    gib,
    known,
    memory_help,
    pressure_spot,
    rule,
)


@rule(severity="warning", needs=("device.name", "memory"))
def check(view: RunView) -> Iterator[Found]:
    memory = budget(view)
    found = devices.find(known(view.run.device.name) or "")
    if memory is None or found is None or found.usable is None or found.memory is None:
        return
    full = at_length(view, memory) if chosen_length(view) else memory
    need, (least, most) = full.device_use, found.usable
    certain = need.low > most
    if not certain and (memory.verdict == "unknown" or not chosen_length(view) or need.likely <= most):
        return
    share = gib(most) if gib(least) == gib(most) else f"{gib(least)} to {gib(most)}"
    yield Found(
        at=pressure_spot(view, full),
        message=f"needs {f'at least {gib(need.low)}' if certain else f'about {gib(need.likely)}'}: of the "
        f"{gib(found.memory[1])} of the {found.name}, macOS lets the GPU use {share}{assumed(memory)}",
        help=memory_help(view, full),
        notes=[(view.run.device.name, "the device")],
    )
