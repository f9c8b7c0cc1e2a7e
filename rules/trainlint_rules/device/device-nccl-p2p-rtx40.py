"""Several GeForce RTX 40 started without accelerate, which would switch peer-to-peer transfers off."""

import re
from collections.abc import Iterator, Mapping

from trainlint.api import Found, RunView, devices, known, rule

BARE = re.compile(r"(\S*/)?(torchrun|deepspeed|python3?\s+-m\s+torch\.distributed\.(run|launch))\b.*", re.DOTALL)
SWITCHES = ("NCCL_P2P_DISABLE", "NCCL_IB_DISABLE")


@rule(severity="info", needs=("device.name", "launch.command"))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    found = devices.find(known(run.device.name) or "")
    command = run.launch.command
    if found is None or command is None or not re.fullmatch(r"RTX 40\d0.*", found.name) or "Ada" in found.name:
        return
    processes = known(run.parallel.per_node) or known(run.device.count) or 1
    env = known(run.launch.env) or {}
    missing = [name for name in SWITCHES if not isinstance(env, Mapping) or name not in env]
    if processes < 2 or not missing or not BARE.fullmatch(command.value.strip()):
        return
    without = " and ".join(f"`{name}`" for name in missing)
    yield Found(
        at=command,
        message=f"{processes} processes on {found.name}s without {without}: drivers before 550.40.07 offer "
        "peer-to-peer transfers that these cards lack, and accelerate stops or NCCL hangs",
        help=f"set {' and '.join(f'`{name}=1`' for name in missing)}, or start with `accelerate launch`, which does",
        notes=[(run.device.name, "the device")],
    )
