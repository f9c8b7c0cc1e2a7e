"""The optimizer that is asked for does not run on the CPU, where its states are sent."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, known, rule, said

FORMATS = ("hf-trainer", "trl", "llamafactory", "axolotl", "ms-swift", "python-script", "shell-launcher")
KEPT = (
    "adamw_torch",
    "adamw_torch_fused",
    "adamw_torch_xla",
    "adamw_torch_npu_fused",
    "adamw_hf",
    "adamw_apex_fused",
    "adamw_anyprecision",
    "adagrad",
    "lion_32bit",
    "paged_lion_32bit",
    "paged_adamw_32bit",
)
"""Optimizers for which accelerate has a DeepSpeed one of the same rule."""
FORCE = "zero_force_ds_cpu_optimizer"


@rule(severity="error", needs=("sharding.offload_optimizer", "optimizer.name", "sharding.kind"), formats=FORMATS)
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    place, optimizer = run.sharding.offload_optimizer, run.optimizer.name
    if place is None or optimizer is None or place.value not in ("cpu", "nvme") or optimizer.value in KEPT:
        return
    if not optimizer.written or not str(known(run.sharding.kind)).startswith("zero"):
        return
    engine = view.fragment("deepspeed")
    if engine is not None and (engine.entry("optimizer") is not None or engine.written(FORCE) is False):
        return
    where = f"`{said(place)}`" if place.key else f"the offload of {place.note or 'the engine'}"
    yield Found(
        at=optimizer,
        message=f"`{said(optimizer)}` does not step on the CPU, where {where} keeps its states: accelerate trains with "
        "DeepSpeedCPUAdam instead, or DeepSpeed refuses",
        help=f"set `{optimizer.key}` to `adamw_torch`, or take the offload out",
        notes=[(place, "states go there")],
        severity="warning" if "adamw" in optimizer.value else "error",  # Adam all the same, with other bits
    )
