"""Unsloth's kernels on several devices."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, known, rule, said, since

REFUSED = {"zero3": "ZeRO-3", "fsdp": "FSDP", "fsdp2": "FSDP"}
DDP = "2025.9"
"""Release from whose time on Unsloth documents several devices."""


@rule(severity="warning", needs=("kernels",))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    kernels, sharding, world = run.kernels, run.sharding.kind, run.parallel.world
    if kernels is None or kernels.value != "unsloth" or not kernels.written:
        return
    engine = REFUSED.get(str(known(sharding)))
    what = "Unsloth's model" if kernels.key == "unsloth" else f"`{said(kernels)}`"
    if engine is not None:
        refuses = view.root.format == "llamafactory" and engine == "ZeRO-3"
        yield Found(
            at=kernels,
            message=f"{what} under {engine}: Unsloth patches whole layers and can not train split weights"
            + (", LLaMA-Factory stops" if refuses else ""),
            help="take Unsloth or the sharding out",
            notes=[(sharding, engine)],
            severity="error" if refuses else "warning",
        )
    elif world is not None and world.value > 1 and not since(run.versions, "unsloth", DDP):
        yield Found(
            at=kernels,
            message=f"{what} in {world.value} processes: Unsloth is made for one device, releases before "
            f"{DDP} stop or train on one alone",
            help="start one process on one device",
            notes=[(run.parallel.per_node or world, "the processes")],
        )
