"""The launch configs of two machines claim the same rank, or one is beyond the machines there are."""

from collections.abc import Iterator

from trainlint.api import FileView, Found, Fragment, Scalar, rule, set_value

KEY = "machine_rank"


@rule(severity="error", on="file", formats=("accelerate",))
def check(view: FileView) -> Iterator[Found]:
    beyond = _beyond(view.fragment)
    if beyond is not None:
        yield beyond
        return
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


def _beyond(fragment: Fragment) -> Found | None:
    """Ranks count from 0, so that the last of two machines is 1."""
    entry, rank, count = fragment.entry(KEY), fragment.written(KEY), fragment.written("num_machines")
    if entry is None or not isinstance(rank, int) or not isinstance(count, int) or not 0 < count <= rank:
        return None
    return Found(
        at=entry,
        message=f"`{KEY}: {rank}`, and `num_machines: {count}` has the ranks 0 to {count - 1}"
        if count > 1
        else f"`{KEY}: {rank}`, and `num_machines: 1` has rank 0 alone",
        help=f"count from 0: `{KEY}: {count - 1}` is the last",
        notes=[(fragment.entry("num_machines"), "the machines")],
    )
