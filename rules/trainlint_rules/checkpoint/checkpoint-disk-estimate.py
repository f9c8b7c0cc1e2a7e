"""One checkpoint is larger than the disk that the job asks for."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, gib, rule

ELSEWHERE = ("/mnt", "/data", "/nfs", "/shared", "/lustre", "/fsx", "/gpfs", "/scratch", "s3:", "gs:", "/gcs")
"""Folders that are mostly volumes of their own."""


@rule(severity="warning", needs=("checkpoint.bytes", "launch.disk"))
def check(view: RunView) -> Iterator[Found]:
    size, disk, saved = view.run.checkpoint.bytes, view.run.launch.disk, view.run.checkpoint
    output = saved.output.value if saved.output is not None else ""
    if size is None or disk is None or size.value <= disk.value or output.startswith(ELSEWHERE):
        return
    if saved.strategy is not None and saved.strategy.value == "no":
        return
    yield Found(
        at=disk,
        message=f"one checkpoint is {gib(size.value)} ({size.note}), the disk has {gib(disk.value)}",
        help="ask for a larger disk, or save the weights alone (`save_only_model: true`)",
        notes=[(saved.output, "saved here"), (view.run.model.id, "the model")],
    )
