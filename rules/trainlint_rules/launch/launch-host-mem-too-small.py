"""The RAM that a job asks for holds less than the weights that pass through it, or the states offloaded to it."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, Value, gib, known, models, rule, said, started

LAUNCHERS = frozenset(("skypilot", "kubernetes", "shell-launcher", "dstack", "docker-compose", "oumi-job"))
HALF = 2
"""Bytes of a weight in 16 bit, the least that checkpoints are loaded in."""
STATES = 12
"""Bytes a parameter that DeepSpeed keeps on the host: float32 weights and both moments of Adam."""
SPARE = 1.2


@rule(severity="warning")
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    memory, parameters = _asked(view), known(run.model.parameters) or _named(view)
    if memory is None or not parameters or not isinstance(memory.value, int | float):
        return
    nodes = known(run.parallel.nodes, 1)
    offload, engine = run.sharding.offload_optimizer, str(known(run.sharding.kind))
    states = parameters * STATES // max(nodes or 1, 1)
    if known(run.method) == "full" and offload and offload.value == "cpu" and engine in ("zero1", "zero2", "zero3"):
        if memory.value < states:
            yield Found(
                at=memory,
                message=f"`{said(memory)}` is {gib(int(memory.value))}, the optimizer states that "
                f"`{said(offload)}` keeps there are {gib(states)}",
                help=f"ask for {gib(int(states * SPARE))} or more",
                notes=[(offload, "states go to the host"), (run.model.id, "the model")],
                severity="error",
            )
        return
    if known(run.model.quantized) or run.quantization.bits is not None or engine in ("zero3", "device-map"):
        return
    size = run.model.checkpoint_bytes
    weights = size.value if size is not None else parameters * HALF
    if memory.value < weights * SPARE:
        yield Found(
            at=memory,
            message=f"`{said(memory)}` is {gib(int(memory.value))}, the weights alone are {gib(weights)} in 16 bit and "
            "pass through it in each process while they are loaded",
            help=f"ask for {gib(2 * weights)} or more",
            notes=[(run.model.id, "the model")],
        )


def _named(view: RunView) -> int | None:
    """The parameters of the model that a program is given, where it loads them in full."""
    for fragment in view.fragments:
        for start in started.trainings(fragment):
            if any("bit" in name or "quant" in name for name in start.arguments):
                return None
            option = start.arguments.get("model_name_or_path") or start.arguments.get("model_id")
            text = option.values[0].text if option is not None and option.values else None
            model = models.find(text) if text else None
            if model is not None:
                return model.parameters
    return None


def _asked(view: RunView) -> Value[object] | None:
    """The RAM of one machine as a launcher's file sets it; at least so much is no limit, and neither is a request."""
    for path in ("device.host_memory", "launch.memory"):
        value = view.run.get(path)
        if value is None or value.file_format not in LAUNCHERS or value.place is None or not value.written:
            continue
        if value.raw.strip("\"' ").endswith("+") or value.key.endswith("mem-per-cpu"):
            continue
        if path == "launch.memory" and value.file_format == "kubernetes":
            continue
        return value
    return None
