"""The memory stated for the device is not the device's: mostly the machine's RAM."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, devices, gib, known, rule

NEAR = 0.02
"""Two sizes are the same where they differ by no more than this share (firmware keeps a little of the RAM)."""
OVER = 1.06
"""Share of what the device has above which a stated size is another one: `24 GiB` for 23.6 is rounding."""


@rule(severity="error", needs=("device.claimed_memory",))
def check(view: RunView) -> Iterator[Found]:
    device = view.run.device
    claimed, host = device.claimed_memory, known(device.host_memory)
    if claimed is None or known(device.unified, False):
        return
    is_host = host is not None and abs(claimed.value - host) <= NEAR * host
    name = known(device.name, "")
    found = devices.find(name) if name else None
    size = f"`{claimed.raw.strip(chr(34))}`" if claimed.raw else gib(claimed.value)
    if found is not None and found.memory is not None:
        has = found.memory[1]
        if claimed.value <= OVER * has:
            return
        what = "is the machine's RAM" if is_host else "is more memory than it comes with"
        yield Found(
            at=claimed if claimed.place is not None else device.name or claimed,
            message=f"{size} {what}: the {found.name} has {gib(has)}",
            help=f'remove `{claimed.key}`, or set it to "{gib(has)}"'
            if claimed.key
            else f"name the device without a size, or with {found.sizes[-1]} GB",
            notes=[(device.host_memory, "the machine's RAM")] if is_host else [],
            severity="error" if claimed.place is not None else "warning",
        )
    elif is_host and not name and round(claimed.value / (1 << 30)) not in _sold():
        yield Found(
            at=claimed,
            message=f"{size} is also the machine's RAM, and no accelerator is sold with that much memory",
            help="state the memory that `nvidia-smi` shows, or name the `device`",
            notes=[(device.host_memory, "the machine's RAM")],
            severity="warning",
        )


def _sold() -> set[int]:
    return {size for device in devices.every() for size in device.sizes}
