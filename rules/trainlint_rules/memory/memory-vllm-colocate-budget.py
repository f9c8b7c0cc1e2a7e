"""vLLM beside the training takes a share of the device that the training needs."""

from collections.abc import Iterator

from trainlint.api import Entry, Found, Fragment, RunView, Scalar, budget, device_words, gib, rule, said, since

COLOCATED = {"trl": "1.0"}
"""The first release whose `vllm_mode` is colocate where it is not written."""
SHARE = 0.3
"""`vllm_gpu_memory_utilization` where it is not written (TRL since 0.18)."""


@rule(
    severity="error", needs=("device.memory", "memory"), formats=("trl", "axolotl", "python-script", "shell-launcher")
)
def check(view: RunView) -> Iterator[Found]:
    memory, root = budget(view), view.root
    prefix = "trl." if root.format == "axolotl" else ""
    used = root.entry(f"{prefix}use_vllm")
    if memory is None or memory.capacity is None or used is None or not _true(used):
        return
    if not _colocated(view, root, prefix) or _true(root.entry(f"{prefix}vllm_enable_sleep_mode")):
        return
    written = root.entry("vllm.gpu_memory_utilization") if prefix else root.entry("vllm_gpu_memory_utilization")
    share = _number(written) if written is not None else SHARE
    room = memory.capacity[1]
    if share is None or not 0 < share <= 1:
        return
    rest, need = (1 - share) * room, memory.device_use
    if need.likely <= rest:
        return
    certain = need.low > rest
    at = written or used
    default = "" if written is not None else f" ({share:g} of the device by default)"
    amount = f"at least {gib(need.low)}" if certain else f"about {gib(need.likely)}"
    yield Found(
        at=at,
        message=f"`{said(at)}`{default} gives vLLM {gib(share * room)} of the {gib(room)} that {device_words(view)} "
        f"has, the training beside it needs {amount} and has {gib(rest)}",
        help=_help(prefix, share, need.likely, room),
        notes=[(view.run.device.name, "the device")],
        severity=None if certain else "warning",
    )


def _colocated(view: RunView, root: Fragment, prefix: str) -> bool:
    mode = root.written(f"{prefix}vllm_mode")
    if mode is not None:
        return mode == "colocate"
    return not prefix and since(view.run.versions, "trl", COLOCATED["trl"]) is True


def _help(prefix: str, share: float, likely: int, room: int) -> str:
    fits = int(20 * (1 - likely / room)) / 20
    key = "vllm.gpu_memory_utilization" if prefix else "vllm_gpu_memory_utilization"
    lower = f"lower `{key}` to {fits:g}, " if 0.1 <= fits < share else ""
    return f"{lower}set `vllm_enable_sleep_mode: true`, or serve on devices of its own (`vllm_mode: server`)"


def _true(entry: Entry | None) -> bool:
    return entry is not None and isinstance(entry.value, Scalar) and str(entry.value.value).lower() == "true"


def _number(entry: Entry) -> float | None:
    value = entry.value.value if isinstance(entry.value, Scalar) else None
    return float(value) if isinstance(value, int | float) else None
