"""More worker processes than the job has processor cores."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, rule, said

MANY = {"llamafactory": 64}
LARGE = 128
"""Processes worth a word where the cores are not known: people copy LLaMA-Factory's to workstations, others run on
nodes of eight devices, with some hundred cores."""


@rule(severity="warning")
def check(view: RunView) -> Iterator[Found]:
    run, cpus = view.run, view.run.launch.cpus
    processes = run.parallel.per_node.value if run.parallel.per_node is not None else 1
    for workers, times in ((run.data.workers, processes), (run.data.preprocessing, 1)):
        if workers is None or not workers.written:
            continue
        count = workers.value * times
        if cpus is not None and count > cpus.value:
            yield Found(
                at=workers,
                message=f"`{said(workers)}`"
                + (f" in each of {times} processes makes {count} workers" if times > 1 else "")
                + f" on {cpus.value:g} cores",
                help=f"set `{workers.key}` to {max(1, int(cpus.value // times))} or less",
                notes=[(cpus, "the cores")],
            )
        elif cpus is None and count > MANY.get(run.root_format, LARGE):
            yield Found(
                at=workers,
                message=f"`{said(workers)}` starts {count} processes, each with its share of the memory",
                help=f"set `{workers.key}` to the cores that there are, at most",
                severity="info",
            )
