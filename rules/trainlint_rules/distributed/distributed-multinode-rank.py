"""The launch configs of two machines claim the same rank."""

from collections.abc import Iterator

from trainlint.api import FileView, Found, Scalar, rule, set_value

KEY = "machine_rank"


@rule(severity="error", on="file", formats=("accelerate",))
def check(view: FileView) -> Iterator[Found]:
    machines = view.fragment.facts.get("machines")
    if not isinstance(machines, tuple):
        return
    ranks = [machine.written(KEY) or 0 for machine in machines]
    at = next((at for at, machine in enumerate(machines) if machine is view.fragment), 0)
    first = ranks.index(ranks[at])
    if first == at:
        return
    free = next(rank for rank in range(len(ranks) + 1) if rank not in ranks)
    entry = view.fragment.entry(KEY)
    spot = entry or view.fragment.entry("num_machines")
    if spot is None:
        return
    yield Found(
        at=spot,
        message=f"`{KEY}: {ranks[at]}` here and in `{machines[first].file}`: both machines claim one rank "
        "and wait for each other",
        help=f"set `{KEY}` to {free}",
        notes=[(machines[first].entry(KEY), "the same rank")],
        fix=set_value(entry.value, str(free)) if entry is not None and isinstance(entry.value, Scalar) else None,
    )
