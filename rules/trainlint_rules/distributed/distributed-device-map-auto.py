"""The model is spread over all devices by every one of several processes."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, rule, said, started

TRAINERS = ("transformers", "trl")
"""Trainers that hand the model to accelerate, which refuses it."""


@rule(severity="error")
def check(view: RunView) -> Iterator[Found]:
    script, run = view.fragment("python-script"), view.run
    spread = script.values.get("sharding.kind") if script is not None else None
    if script is None or spread is None or spread.key != "device_map":
        return
    if script.facts.get("trainer") not in TRAINERS:
        return
    processes, nodes = run.parallel.per_node or run.parallel.world, run.parallel.nodes
    if (processes is None or not processes.written) and _takes_all(view):
        processes, nodes = run.device.count, None
    if processes is None or not processes.written:
        return
    here = processes.value
    if processes is run.parallel.world and nodes is not None and nodes.value:
        here //= nodes.value
    if here > 1:
        yield Found(
            at=spread,
            message=f"`device_map={spread.raw or spread.value}` spreads the model over all GPUs in each of "
            f"{here} processes, and the trainer refuses such a model",
            help="leave `device_map` out, or start one process",
            notes=[(processes, f"`{said(processes)}`")],
        )


def _takes_all(view: RunView) -> bool:
    """Whether a launcher is asked that starts a process for each device unless told otherwise."""
    starts = [start for fragment in view.fragments for start in started.trainings(fragment)]
    return bool(starts) and all(
        start.launcher == "deepspeed" and not start.options.keys() & {"num_gpus", "include", "i"} for start in starts
    )
