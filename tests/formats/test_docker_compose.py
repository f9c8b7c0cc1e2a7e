"""Docker Compose files: only services that train."""

from .launching import files, launcher, said, taken

GIB = 1 << 30

COMPOSE = """\
services:
  database:
    image: postgres
  train:
    image: a/b
    working_dir: /code
    volumes: ["./src:/code:ro", "data:/data"]
    environment: [CUDA_VISIBLE_DEVICES=0, N=1]
    command: accelerate launch --num_processes 2 train.py
    shm_size: 8gb
    mem_limit: 64g
    deploy:
      resources:
        reservations:
          devices: [{driver: nvidia, count: 2, capabilities: [gpu]}]
"""


def test_a_service_that_trains() -> None:
    found = launcher(COMPOSE, "docker-compose")
    assert said(found, "device.host", "launch", "parallel") == {
        "device.host_memory": 64 * GIB,
        "launch.gpus": 2,
        "launch.image": "a/b",
        "launch.shm": True,
        "launch.shm_memory": 8 * GIB,
        "launch.env": {"CUDA_VISIBLE_DEVICES": "0", "N": "1"},
        "launch.command": "accelerate launch --num_processes 2 train.py",
        "parallel.world": 2,
    }
    assert files(found) == {("script", "src/train.py")}
    assert found.values["device.count"].value == 1  # as many as the process sees
    assert [loser.value for loser in found.values["device.count"].losers] == [2]


def test_devices_by_their_ids() -> None:
    found = launcher(COMPOSE.replace("count: 2", "device_ids: ['0', '1', '2']"), "docker-compose")
    assert found.values["launch.gpus"].value == 3


def test_a_command_as_a_list() -> None:
    text = "services:\n  a:\n    entrypoint: [torchrun]\n    command: [train.py, --x, '1']\n    ipc: host\n"
    found = launcher(text, "docker-compose")
    assert said(found, "launch") == {"launch.shm": True, "launch.command": "torchrun train.py --x 1"}


def test_services_that_do_not_train_are_left_alone() -> None:
    assert taken(COMPOSE.replace("accelerate launch --num_processes 2 train.py", "nvidia-smi dmon")) == []
    assert taken("services: {a: {image: vllm, gpus: all, command: --model x}}\n") == []
    assert taken("services: [a]\n") == []
