"""One process sees several devices, and the Trainer spreads each batch over them with `nn.DataParallel`."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, known, rule, since, started

TRAINERS = ("transformers", "trl")


@rule(severity="warning", needs=("device.count",))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    devices = run.device.count
    if devices is None or devices.value < 2 or known(run.parallel.nodes, 1) != 1 or known(run.device.cpu_only):
        return
    if known(run.sharding.kind) not in (None, "none") or str(known(run.framework)) not in TRAINERS:
        return
    if run.possible.get("sharding.kind") or known(run.device.unified):
        return
    starts = [start for fragment in view.fragments for start in started.trainings(fragment)]
    if len(starts) != 1 or starts[0].launcher != "python" or starts[0].wrapper in ("srun", "mpirun", "mpiexec"):
        return
    (start,) = starts
    visible = start.command.environment.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and (visible.text is None or len(visible.text.split(",")) < 2):
        return
    script = view.fragment("python-script")
    if start.program is None or not (script or start.arguments):
        return
    refuses = known(run.framework) == "trl" and since(run.versions, "trl", "1.16")
    yield Found(
        at=start.word.place,
        message=f"`python` starts one process, which sees {devices.value} devices: "
        + ("TRL stops" if refuses else "the Trainer copies the model to each in every step (`nn.DataParallel`)"),
        help=f"start it with `torchrun --nproc_per_node {devices.value}`, or set `CUDA_VISIBLE_DEVICES=0`",
        notes=[(devices, "the devices")],
        severity="error" if refuses else "warning",
    )
