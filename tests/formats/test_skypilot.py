"""SkyPilot tasks and Oumi jobs."""

import pytest

from .drafting import fragment
from .launching import files, launcher, place, said, taken

GIB = 1 << 30

TASK = """\
resources:
  accelerators: L4:8
  memory: 64+
  cpus: 16+
  disk_size: 512
  image_id: docker:me/train:1
num_nodes: 2
workdir: ./code
envs:
  LR: 2e-5
  TOKEN:
file_mounts:
  /configs: ./configs
  /bucket: s3://bucket
setup: |
  cd somewhere
  pip install -q trl==0.19.0 "transformers>=4.46,<5" deepspeed
  uv pip install accelerate
run: |
  torchrun --nnodes=$SKYPILOT_NUM_NODES --nproc_per_node=$SKYPILOT_NUM_GPUS_PER_NODE \\
    --node_rank=$SKYPILOT_NODE_RANK train.py --config /configs/sft.yaml --lr $LR
"""


def test_a_task() -> None:
    found = launcher(TASK, "skypilot")
    assert not found.launches
    assert said(found, "device", "parallel", "launch", "versions") == {
        "device.name": "L4",
        "device.count": 16,
        "launch.accelerated": True,
        "launch.gpus": 8,
        "launch.memory": 64.0 * GIB,
        "launch.cpus": 16.0,
        "launch.disk": 512 * GIB,
        "launch.image": "me/train:1",
        "launch.env": {"LR": "2e-5"},
        "launch.command": found.values["launch.command"].value,
        "parallel.nodes": 2,
        "parallel.per_node": 8,
        "versions.trl": "0.19.0",
        "versions.transformers": ">=4.46,<5",
    }
    assert files(found) == {("script", "code/train.py"), ("config", "configs/sft.yaml")}
    assert place(found, "versions.trl") == (17, 18)
    assert place(found, "device.name") == (2, 17)
    assert place(found, "parallel.nodes") == (20, 21)


@pytest.mark.parametrize(
    ("written", "name", "gpus"),
    [
        ("A100:4", "A100 40GB", 4),
        ("A100-80GB:4", "A100-80GB", 4),
        ("{H100: 8}", "H100", 8),
        ("[T4:2]", "T4", 2),
        ("V100", "V100 16GB", 1),
        ("'L4:1'", "L4", 1),
        ("{L4, A10G}", None, None),
        ("[L4:1, T4:1]", None, None),
        ("{L4: 1, T4: 1}", None, None),
        ("tpu-v5e-8", "tpu-v5e-8", 1),
    ],
)
def test_accelerators(written: str, name: str | None, gpus: int | None) -> None:
    found = launcher(f"resources: {{accelerators: {written}}}\nrun: x\n", "skypilot")
    known = {"device.name": name, "launch.gpus": gpus, "device.count": gpus}
    assert said(found, "device", "launch.gpus") == {path: value for path, value in known.items() if value is not None}


def test_an_instance_type_says_all() -> None:
    found = launcher("resources: {instance_type: p4d.24xlarge}\nrun: x\n", "skypilot")
    assert said(found, "device") == {
        "device.name": "A100 40GB",
        "device.count": 8,
        "device.host_memory": 1152 * GIB,
    }


def test_memory_that_is_no_least_is_the_machines() -> None:
    found = launcher("resources: {accelerators: L4, memory: 128}\nrun: x\n", "skypilot")
    assert found.values["device.host_memory"].value == 128 * GIB


def test_each_training_of_a_task_is_a_run() -> None:
    text = "resources: {accelerators: L4}\nrun: |\n  trl sft --config a.yaml\n  cd x\n  trl dpo --config b.yaml\n"
    first = launcher(text, "skypilot") if len(taken(text)) == 1 else None
    assert first is None
    assert taken(text) == ["skypilot", "skypilot"]


@pytest.mark.parametrize(
    "text",
    [
        "resources: {accelerators: L4}\nservice: {readiness_probe: /}\nrun: python serve.py\n",
        "resources: {cpus: 4}\nrun: python -m http.server\n",
        "resources: {limits: {cpu: 1}}\nrun: torchrun train.py\n",
        "resources: [a]\nrun: torchrun train.py\n",
        "run: torchrun train.py\n",
    ],
)
def test_what_is_no_training_is_left_alone(text: str) -> None:
    assert taken(text) == []


def test_a_task_without_accelerators_that_trains() -> None:
    found = launcher("resources: {cpus: 4}\nrun: torchrun train.py\n", "skypilot")
    assert found.values["launch.accelerated"].value is False


def test_an_oumi_job() -> None:
    text = (
        "resources: {cloud: gcp, accelerators: 'A100:4'}\nworking_dir: .\nrun: |\n  set -e\n"
        "  oumi distributed torchrun -m oumi train -c oumi://configs/sft/train.yaml --training.x 1\n"
    )
    found = launcher(text, "oumi-job")
    assert files(found) == {("config", "configs/sft/train.yaml")}
    assert said(found, "device.count", "parallel") == {"device.count": 4}
    own = "resources: {cloud: polaris}\nworking_dir: .\nrun: mpiexec -n ${OUMI_NUM_NODES} ./go.sh\n"
    assert taken(own) == ["oumi-job"]
    assert taken("resources: {cloud: gcp}\nworking_dir: .\nrun: ls\n") == []


def test_arguments_of_a_trainer_make_a_run() -> None:
    text = (
        "resources: {accelerators: 'T4:1'}\nenvs: {SIZE: 16}\n"
        "run: python run_sft.py --model_name_or_path a/b --per_device_train_batch_size $SIZE --fp16 --do_train\n"
    )
    found = fragment(text)
    assert (found.format, found.launches) == ("skypilot", True)
    assert said(found, "batch", "device", "parallel") == {
        "batch.micro": 16,
        "device.name": "T4",
        "device.count": 1,
        "parallel.world": 1,
    }
    assert place(found, "batch.micro") == (2, 14)
