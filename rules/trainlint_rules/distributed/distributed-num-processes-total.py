"""accelerate's `num_processes` counts over all machines, and it was given for one."""

from collections.abc import Iterator

from trainlint.api import Found, Fragment, RunView, rule, said

COUNT, MACHINES = "num_processes", "num_machines"


@rule(severity="error")
def check(view: RunView) -> Iterator[Found]:
    launch = view.fragment("accelerate")
    found = _written(launch) if launch is not None else None
    if launch is None or found is None:
        return
    processes, machines = found
    gpus = view.run.launch.gpus
    at, number = launch.entry(COUNT), launch.entry(MACHINES)
    if at is None or number is None:
        return
    if processes % machines:
        each = processes // machines
        yield Found(
            at=at,
            message=f"`{said(at)}` over {machines} machines is no whole number each: "
            + (f"{each} start on every one, {each * machines} in all" if each else "none would start"),
            help=f"set `{COUNT}` to devices of one machine times {machines}",
            notes=[(number, "processes count over these")],
        )
    elif gpus is not None and gpus.written and processes == gpus.value:
        yield Found(
            at=at,
            message=f"`{said(at)}` counts over {machines} machines, which have {gpus.value} devices each: "
            f"{processes // machines} of them are used",
            help=f"set `{COUNT}` to {gpus.value * machines}",
            notes=[(gpus, "devices of one machine"), (number, "machines")],
            severity="warning",
        )
    elif gpus is None and (count := view.run.device.count) is not None and count.value == processes * machines:
        yield Found(
            at=at,
            message=f"`{said(at)}` counts over {machines} machines, which have {count.value} devices: "
            f"{processes} of them are used",
            help=f"set `{COUNT}` to {count.value}",
            notes=[(count, "all devices"), (number, "machines")],
            severity="warning",
        )


def _written(launch: Fragment) -> tuple[int, int] | None:
    processes, machines = launch.written(COUNT), launch.written(MACHINES)
    if not isinstance(processes, int) or not isinstance(machines, int) or processes < 1 or machines < 2:
        return None
    return processes, machines
