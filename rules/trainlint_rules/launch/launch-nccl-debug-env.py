"""A variable that keeps NCCL off the fast links between data-centre devices."""

import re
from collections.abc import Iterator

from trainlint.api import Found, RunView, Value, devices, known, rule

LINKED = re.compile(r"(A100|A800|H100|H800|H200|H20|B200|B300|GB200|GB300)\b")
"""Devices that are joined by NVLink in their servers; their PCIe cards are told apart by name."""
ON = ("1", "true", "True", "TRUE")


@rule(severity="warning", needs=("launch.env", "device.name"))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    name, env = run.device.name, run.launch.env.value if run.launch.env is not None else None
    match = devices.match(name.value) if name is not None else None
    if name is None or match is None or not isinstance(env, dict) or not LINKED.match(match.device.name):
        return
    several = (known(run.launch.gpus) or known(run.device.count) or 2) > 1
    peers = env.get("NCCL_P2P_DISABLE")
    if isinstance(peers, Value) and str(peers.value) in ON and several and "PCIe" not in match.device.name:
        yield Found(
            at=peers,
            message=f"`NCCL_P2P_DISABLE={peers.value}` keeps NCCL off NVLink: on {match.device.name} gradients go "
            "through the host at a fraction of the speed",
            help="take it out; it is for devices without peer access",
            notes=[(name, "the device")],
        )
    fabric, nodes = env.get("NCCL_IB_DISABLE"), run.parallel.nodes
    if isinstance(fabric, Value) and str(fabric.value) in ON and nodes is not None and nodes.value > 1:
        yield Found(
            at=fabric,
            message=f"`NCCL_IB_DISABLE={fabric.value}` sends what {nodes.value} machines exchange over TCP, "
            "also where there is InfiniBand or RoCE",
            help="take it out unless the machines have no such network",
            notes=[(nodes, "the machines")],
            severity="info",
        )
