"""A device's memory stated in GB (10^9 bytes) where GiB (2^30) decides whether the run fits."""

import re
from collections.abc import Iterator

from trainlint.api import Found, RunView, budget, gib, rule

DECIMAL = re.compile(r"\s*[\"']?\s*([\d._]+)\s*([KMGT])B\s*[\"']?\s*", re.IGNORECASE)
RATIO = (1 << 30) / 10**9


@rule(severity="info", needs=("device.claimed_memory", "memory"))
def check(view: RunView) -> Iterator[Found]:
    claimed, memory = view.run.device.claimed_memory, budget(view)
    written = DECIMAL.fullmatch(claimed.raw) if claimed is not None else None
    if claimed is None or memory is None or written is None or claimed.place is None:
        return
    need, binary = memory.device_use.likely, claimed.value * RATIO
    if not claimed.value < need <= binary:
        return
    yield Found(
        at=claimed,
        message=f"`{written[1]} {written[2].upper()}B` is {gib(claimed.value)}, and the run needs about {gib(need)}: "
        f"with {gib(binary)} it fits",
        help=f'write `{claimed.key} = "{written[1]} {written[2].upper()}iB"` if that is what the driver reports',
    )
