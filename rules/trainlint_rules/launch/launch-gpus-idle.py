"""Fewer processes are started on a machine than the job asked devices for."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, known, rule, said, started

OTHERS = ("vllm", "sglang", "device_map", "CUDA_VISIBLE_DEVICES", "tensor_parallel", "num_gpus_per")
"""Words of what takes the other devices, or gives a process several."""
TASKS = ("ntasks", "ntasks-per-node", "gpus-per-task")


@rule(severity="warning", needs=("launch.gpus",))
def check(view: RunView) -> Iterator[Found]:
    run, gpus = view.run, view.run.launch.gpus
    processes = started.processes_here(run)
    if gpus is None or gpus.place is None or processes is None or processes[1] >= gpus.value:
        return
    degrees = (run.parallel.tensor, run.parallel.pipeline, run.parallel.context)
    if any(degree is not None and degree.value > 1 for degree in degrees) or known(run.launch.accelerated) is False:
        return
    starts = [start for fragment in view.fragments for start in started.trainings(fragment)]
    text = "\n".join(fragment.document.text for fragment in view.fragments)
    if len(starts) != 1 or " &\n" in text or any(word.lower() in text.lower() for word in OTHERS):
        return
    if any(key in started.directives(fragment) for fragment in view.fragments for key in TASKS):
        return
    value, count = processes
    idle = gpus.value - count
    yield Found(
        at=value,
        message=f"`{said(value)}` starts {count} {'process' if count == 1 else 'processes'} where the job has "
        f"{gpus.value} devices: {idle} of them {'is' if idle == 1 else 'are'} never used",
        help=f"start {gpus.value} processes, or ask for {count} {'device' if count == 1 else 'devices'}",
        notes=[(gpus, "the devices")],
    )
