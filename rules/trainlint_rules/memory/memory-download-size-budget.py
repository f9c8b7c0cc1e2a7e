"""The device has room for the weight files and no more, and the run needs several times that."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, budget, device_words, gib, known, phase_words, rule

FEWEST, MOST = 0.9, 1.3
"""Device memory over the size of the files, between which the files look like what the device was chosen by."""


@rule(severity="info", needs=("device.memory", "memory"))
def check(view: RunView) -> Iterator[Found]:
    run, memory = view.run, budget(view)
    size = _files(view)
    if memory is None or memory.capacity is None or not size or known(run.device.count, 1) != 1:
        return
    room = memory.capacity[1]
    if memory.device_use.low <= room or not FEWEST <= room / size <= MOST or run.model.id is None:
        return
    need = memory.device_use.low
    yield Found(
        at=run.model.id,
        message=f"the {gib(size)} of weight files fit the {gib(room)} that {device_words(view)} has, training needs "
        f"{need / size:.1f} times their size {phase_words(memory)}: gradients, optimizer states, activations",
        help="choose the device by `trainlint estimate`, not by the size of the download",
    )


def _files(view: RunView) -> int:
    """Bytes of the checkpoint, 0 where they are not known."""
    model = view.run.model
    if model.checkpoint_bytes is not None:
        return model.checkpoint_bytes.value
    if model.parameters is None or model.parameters.origin == "assumed" or model.quantized is not None:
        return 0
    return model.parameters.value * {"float32": 4, "bfloat16": 2, "float16": 2}.get(known(model.dtype, "") or "", 2)
