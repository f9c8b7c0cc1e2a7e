"""Every checkpoint under FSDP gathers a large model in the RAM of one process."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, gib, known, rule, said

LARGE = 30_000_000_000
"""Parameters from which on a gather takes minutes, and collectives run into their time limit of ten."""
STATES = 12
"""Bytes of a trained parameter in a checkpoint with the optimizer: fp32 weights and two moments."""
WEIGHTS = 2
"""Bytes of a frozen one in 16 bit."""


@rule(severity="warning", needs=("checkpoint.full_state", "model.parameters", "sharding.kind"))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    full, count = run.checkpoint.full_state, known(run.model.parameters)
    if full is None or not full.value or full.place is None or count is None:
        return
    if (known(run.sharding.kind) or "") not in ("fsdp", "fsdp2") or known(run.checkpoint.strategy) == "no":
        return
    host = run.launch.memory or run.device.host_memory
    trains = known(run.method) == "full"
    width = STATES if trains else (known(run.quantization.bits) or 8 * WEIGHTS) / 8
    size = int(count * width)
    short = host is not None and size > host.value
    if not short and count < LARGE:
        return
    what = f"{gib(size)} of {'weights and optimizer states' if trains else 'weights'}"
    over = f", the machine has {gib(host.value)}" if short and host is not None else ""
    yield Found(
        at=full,
        message=f"`{said(full)}` gathers {what} in the RAM of the first process at every checkpoint while the "
        f"others wait{over}",
        help="save with `SHARDED_STATE_DICT` while training, and merge the last checkpoint with "
        "`accelerate merge-weights`",
        notes=[(run.model.id, "the model"), (host if short else None, "the RAM")],
        severity=None if short or trains else "info",
    )
