"""Offloading to the CPU moves more into the machine's RAM than it has."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, Severity, Value, gib, known, rule, said

STATES, GRADIENTS = 12, 4
"""DeepSpeed, bytes of a trained parameter: fp32 weights and two moments, and pinned fp32 gradients (stage3.py)."""
JOBS = ("skypilot", "kubernetes", "shell-launcher", "dstack", "docker-compose", "oumi-job")
WEIGHTS = 2
"""And of every one that is offloaded too."""


@rule(severity="error", needs=("sharding.kind", "model.parameters"))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    states, weights = run.sharding.offload_optimizer, run.sharding.offload_parameters
    host = run.launch.memory or run.device.host_memory
    at = next((value for value in (states, weights) if value is not None and value.place and _cpu(value)), None)
    if at is None or host is None or run.sharding.kind is None:
        return
    total, trained, nodes = _counts(view)
    if not trained or nodes == 0:
        return
    if run.sharding.kind.value.startswith("zero"):
        stepped = trained if _cpu(states) else 0
        moved = total if _cpu(weights) and run.sharding.kind.value == "zero3" else 0
        least = (STATES * stepped + WEIGHTS * moved) // nodes
        likely = least + GRADIENTS * stepped // nodes
    else:
        least, likely = (int(size) // nodes for size in _fsdp(view, total, trained))
    if likely <= host.value:
        return
    yield Found(
        at=at,
        message=f"`{said(at)}` holds at least {gib(least)} in the RAM of {'each' if nodes > 1 else 'the'} machine, "
        f"likely {gib(likely)} (weights and states, {trained / 1e9:.1f} B parameters train), which has "
        f"{gib(host.value)}: the kernel ends the run (exit 137 or -9)",
        help="ask for more RAM, offload to `nvme`, or shard over more devices without offload",
        notes=[(host, "the RAM"), (run.model.id, "the model")],
        severity=_severity(host, least, "zero" in run.sharding.kind.value),
    )


def _severity(host: Value[int] | Value[float], least: int, zero: bool) -> Severity:
    """An error where the least is too much; under ZeRO `launch-host-mem-too-small` says it of a job's request."""
    if least <= host.value:
        return "warning"
    return "info" if zero and host.file_format in JOBS else "error"


def _fsdp(view: RunView, total: int, trained: int) -> tuple[float, float]:
    """Shards of weights, moments and, likely, gradients: all in the dtype of the weights."""
    run = view.run
    width = 4 if known(run.precision.weights) == "float32" else 2
    frozen = (total - trained) * (known(run.quantization.bits) or 8 * width) / 8
    name = known(run.optimizer.name) or ""
    moments = 0 if "adam" not in name else 2 if "8bit" in name else 2 * width
    least = frozen + (width + moments) * trained
    return least, least + width * trained


def _cpu(value: Value[str] | None) -> bool:
    return value is not None and value.value == "cpu"


def _counts(view: RunView) -> tuple[int, int, int]:
    """Parameters, those that train, and machines; 0 machines where their number is not known."""
    run, memory = view.run, view.memory
    total = known(run.model.parameters, 0) or 0
    trained = total if known(run.method) == "full" else 0
    if memory is not None:
        trained = memory.trainable
    world, each = known(run.parallel.world), known(run.parallel.per_node) or known(run.device.count) or 8
    nodes = known(run.parallel.nodes) or (1 if world is None or world <= each else 0)
    return total, trained, nodes
