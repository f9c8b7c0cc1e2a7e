"""More processes are started on a machine than it has devices."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, Value, known, rule, said, started

VISIBLE = "CUDA_VISIBLE_DEVICES"


@rule(severity="error")
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    processes, gpus = started.processes_here(run), _devices(view)
    if processes is None or gpus is None or known(run.device.cpu_only):
        return
    value, count = processes
    if count <= gpus.value:
        return
    nodes = run.parallel.nodes
    over = "" if value.value == count or nodes is None else f" over {nodes.value} machines"
    there = "is 1 device" if gpus.value == 1 else f"are {gpus.value} devices"
    yield Found(
        at=value,
        message=f"`{said(value)}`{over} starts {count} processes where there {there}: the last {count - gpus.value} "
        f"{'has' if count - gpus.value == 1 else 'have'} none",
        help=f"set `{value.key}` to {gpus.value}"
        if value.value == count
        else f"give each machine no more than {gpus.value}",
        notes=[(gpus, "the devices")],
    )


def _devices(view: RunView) -> Value[int] | None:
    """The devices of one machine."""
    count, gpus = view.run.device.count, view.run.launch.gpus
    if count is not None and count.key == VISIBLE:
        return count
    return gpus if gpus is not None else count if known(view.run.parallel.nodes, 1) == 1 else None
