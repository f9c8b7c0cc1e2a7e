"""A pod's devices are requested, and the limit is another number or not set."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, rule, said


@rule(severity="error", needs=("launch.gpus_requested",))
def check(view: RunView) -> Iterator[Found]:
    requested, limit = view.run.launch.gpus_requested, view.run.launch.gpus
    if requested is None or requested.place is None or requested.file_format != "kubernetes":
        return
    alone = limit is None or limit.place == requested.place
    if not alone and limit is not None and limit.value == requested.value:
        return
    beside = "and no limit" if limit is None or alone else f"and a limit of {limit.value}"
    yield Found(
        at=requested,
        message=f"`{said(requested)}` in the requests {beside}: devices can not be shared, so that Kubernetes refuses "
        "the pod",
        help=f"write `{said(requested)}` in the limits; the request follows",
        notes=[(None if alone else limit, "the limit")],
    )
