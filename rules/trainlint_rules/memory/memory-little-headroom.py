"""The run is likely to fill the device to the last few percent, or a little more."""

from collections.abc import Iterator

from trainlint.api import (
    Found,
    RunView,
    assumed,
    at_length,
    budget,
    chosen_length,
    device_words,
    firm,
    gib,
    known,
    may_be_sharded,
    memory_advice,
    phase_words,
    pressure_spot,
    rule,
)

TIGHT = 0.95
"""Share of the device above which the likely need, without what is only cached, is worth a word."""


@rule(severity="warning", needs=("device.memory", "memory"))
def check(view: RunView) -> Iterator[Found]:
    memory = budget(view)
    if (
        memory is None
        or memory.capacity is None
        or memory.verdict == "unknown"
        or known(view.run.device.unified, False)
    ):
        return
    room, most = memory.capacity
    if firm(memory) <= TIGHT * room or not chosen_length(view) or may_be_sharded(view):
        return
    full = at_length(view, memory)
    need = firm(full)
    if full.device_use.low > most or need <= TIGHT * room:
        return
    over = "more than" if need > room else f"{100 * need / room:.0f} % of"
    help_, fix = memory_advice(view, full)
    yield Found(
        at=pressure_spot(view, full),
        message=f"needs about {gib(need)} {phase_words(full)}, {over} the {gib(room)} that "
        f"{device_words(view)} has{assumed(memory)}",
        help=help_,
        fix=fix,
        notes=[(view.run.device.name, "the device")],
    )
