"""dstack tasks."""

import pytest

from .launching import files, launcher, said, taken

GIB = 1 << 30


def task(gpu: str, command: str = "torchrun train.py") -> str:
    return f"type: task\nname: x\ncommands:\n  - cd code\n  - {command}\nresources:\n  gpu: {gpu}\n"


def test_a_task() -> None:
    found = launcher(
        task("A100:80GB:2").replace("name: x", "nodes: 2\nmax_duration: 2h\nimage: a/b\nenv:\n  - TOKEN\n  - N=3")
        + "  memory: 64GB\n  shm_size: 16GB\n  disk: 200GB..\n",
        "dstack",
    )
    assert said(found, "device", "launch", "parallel.nodes") == {
        "device.name": "A100",
        "device.memory": 80 * GIB,
        "device.count": 4,
        "device.host_memory": 64 * GIB,
        "launch.accelerated": True,
        "launch.gpus": 2,
        "launch.memory": 64.0 * GIB,
        "launch.shm": True,
        "launch.shm_memory": 16 * GIB,
        "launch.disk": 200 * GIB,
        "launch.time": 7200.0,
        "launch.image": "a/b",
        "launch.env": {"N": "3"},
        "launch.command": "torchrun train.py",
        "parallel.nodes": 2,
    }
    assert files(found) == {("script", "code/train.py")}


@pytest.mark.parametrize(
    ("gpu", "values"),
    [
        ("24GB", {"device.memory": 24 * GIB, "device.count": 1}),
        ("24GB..", {}),
        ("24GB..80GB:2", {"device.count": 2}),
        ("nvidia:H100:8", {"device.name": "H100", "device.count": 8}),
        ("L4,T4", {}),
        ("H100:4..8", {"device.name": "H100"}),
        ("2", {"device.count": 2}),
        ("{name: L4, count: 2}", {"device.name": "L4", "device.count": 2}),
        ("{name: [L4, T4], memory: 24GB}", {"device.memory": 24 * GIB, "device.count": 1}),
    ],
)
def test_gpus(gpu: str, values: dict[str, object]) -> None:
    assert said(launcher(task(gpu), "dstack"), "device") == values


def test_what_trains_nothing_is_left_alone() -> None:
    assert taken("type: service\ncommands: [vllm serve x]\nresources: {gpu: 24GB}\n") == []
    assert taken("type: task\nname: x\ncommands: [python prepare.py]\n") == []
    assert taken("type: task\nname: x\ncommands: [python train.py]\n") == ["dstack"]
    assert taken("type: dev-environment\nide: vscode\nresources: {gpu: 24GB}\n") == []
