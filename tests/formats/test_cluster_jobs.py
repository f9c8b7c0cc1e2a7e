"""Jobs of clouds and clusters: Beaker, MosaicML, Azure ML, Vertex AI, Helm values, and small configs of devices."""

import pytest

from .drafting import fragments
from .launching import files, launcher, place, said, taken

GIB = 1 << 30


def test_beaker() -> None:
    text = (
        "version: v2\ntasks:\n  - name: a\n    replicas: 2\n    image: {beaker: me/x}\n"
        "    command: [/bin/sh, -c]\n    arguments: ['accelerate launch\n      --num_processes 16 train.py\n    ']\n"
        "    envVars: [{name: A, value: b}, {name: T, secret: t}]\n"
        "    resources: {gpuCount: 8, sharedMemory: 10GiB, memory: 400GiB, cpuCount: 32}\n"
        "  - name: b\n    arguments: [torchrun, train.py]\n    resources: {gpuCount: 1}\n"
    )
    first, second = fragments(text)
    assert (first.format, second.format) == ("beaker", "beaker")
    assert said(first) == {
        "device.count": 16,
        "launch.gpus": 8,
        "launch.cpus": 32.0,
        "launch.memory": 400.0 * GIB,
        "launch.shm": True,
        "launch.shm_memory": 10 * GIB,
        "launch.image": "me/x",
        "launch.env": {"A": "b"},
        "launch.command": "accelerate launch --num_processes 16 train.py",
        "parallel.nodes": 2,
        "parallel.world": 16,
    }
    assert place(first, "parallel.world") == (8, 23)
    assert said(second, "device") == {"device.count": 1}
    assert taken("version: '3'\ntasks:\n  build:\n    cmds: [go build]\n") == []


def test_mosaicml() -> None:
    text = (
        "run_name: x\nimage: a/b\ncompute: {gpus: 16, gpu_type: a100_80gb, cluster: r1}\nenv_variables: {A: b}\n"
        "command: |\n  cd code\n  composer train.py sft.yaml\n"
    )
    found = launcher(text, "mosaicml")
    assert said(found) == {
        "device.name": "a100 80gb",
        "device.count": 16,
        "launch.image": "a/b",
        "launch.env": {"A": "b"},
        "launch.command": "composer train.py sft.yaml",
    }
    assert files(found) == {("script", "code/train.py"), ("config", "code/sft.yaml")}
    assert taken("compute: {gpus: 8}\nlearning_rate: 1\n") == []


def test_azureml() -> None:
    text = (
        "$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json\ncode: src\n"
        "command: python train.py --lr ${{inputs.lr}}\nenvironment: {image: a/b}\ncompute: azureml:gpu\n"
        "resources: {instance_count: 2, instance_type: Standard_NC24ads_A100_v4, shm_size: 16g}\n"
        "distribution: {type: pytorch, process_count_per_instance: 1}\nlimits: {timeout: 3600}\n"
    )
    found = launcher(text, "azureml-job")
    assert said(found) == {
        "device.name": found.values["device.name"].value,
        "device.count": 2,
        "device.host_memory": 220 * GIB,
        "launch.gpus": 1,
        "launch.image": "a/b",
        "launch.time": 3600.0,
        "launch.shm": True,
        "launch.shm_memory": 16 * GIB,
        "launch.command": "python train.py --lr ${{inputs.lr}}",
        "parallel.nodes": 2,
        "parallel.per_node": 1,
    }
    assert files(found) == {("script", "src/train.py")}
    assert taken("command: python score.py\nenvironment: x\ncompute: y\n") == []


def test_vertex() -> None:
    text = (
        "workerPoolSpecs:\n  - machineSpec: {machineType: n1-standard-8, acceleratorType: NVIDIA_TESLA_T4, "
        "acceleratorCount: 2}\n    replicaCount: 1\n    containerSpec: {imageUri: a/b, command: [torchrun], "
        "args: [train.py], env: [{name: A, value: b}]}\n"
    )
    found = launcher(text, "vertex-job")
    assert said(found, "device", "launch.gpus", "launch.env", "parallel.nodes") == {
        "device.name": "NVIDIA TESLA T4",
        "device.count": 2,
        "launch.gpus": 2,
        "launch.env": {"A": "b"},
        "parallel.nodes": 1,
    }
    assert taken("workerPoolSpecs: [{machineSpec: {machineType: n1-standard-8}}]\n") == []


def test_helm_values() -> None:
    text = "workload:\n  gpus: 64\n  image: a/b\n  envs: [{name: A, value: b}]\nvolumes: {sharedMemorySize: 200Gi}\n"
    assert said(launcher(text, "helm-values")) == {
        "device.count": 64,
        "launch.image": "a/b",
        "launch.shm": True,
        "launch.shm_memory": 200 * GIB,
        "launch.env": {"A": "b"},
    }
    plain = "image: {repository: x}\nresources: {limits: {nvidia.com/gpu: 1}}\nnodeSelector: {gpu: l4}\n"
    assert said(launcher(plain, "helm-values"), "device") == {"device.name": "l4", "device.count": 1}
    assert taken("image: {repository: x}\nresources: {limits: {cpu: 1}}\n") == []
    assert taken("workload: {gpus: 0}\n") == []


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (
            "provider: modal\ngpu: h100\ngpu_count: 2\nmemory: 128\ntimeout: 60\n",
            {
                "device.name": "h100",
                "device.count": 2,
                "device.host_memory": 128 * GIB,
                "launch.gpus": 2,
                "launch.time": 60.0,
            },
        ),
        (
            "training_cfg: {entry_script: train.py, run: {nodes: 2, ntasks_per_node: 1}}\n"
            "cluster: {instance_type: ml.g5.8xlarge}\ncontainer: a/b\n",
            {
                "device.name": "A10G",
                "device.count": 2,
                "device.host_memory": 128 * GIB,
                "launch.gpus": 1,
                "launch.image": "a/b",
                "parallel.nodes": 2,
                "parallel.per_node": 1,
            },
        ),
        ("partition: a\nexclusive: true\ngpus_per_node: 8\n", {"launch.gpus": 8}),
        (
            "cluster: {nodes: 2, gpus_per_node: 8, gpu_type: H100}\nparallelism: {tensor_parallel: 2}\n",
            {
                "device.name": "H100",
                "device.count": 16,
                "launch.gpus": 8,
                "parallel.nodes": 2,
                "parallel.tensor": 2,
            },
        ),
    ],
)
def test_devices_in_a_tools_own_words(text: str, values: dict[str, object]) -> None:
    assert said(launcher(text, "cluster-job")) == values


@pytest.mark.parametrize("text", ["gpu: h100\n", "cluster: {name: x}\nmodel: y\n", "gpus_per_node: 8\nx: 1\n"])
def test_a_word_alone_is_no_job(text: str) -> None:
    assert taken(text) == []
