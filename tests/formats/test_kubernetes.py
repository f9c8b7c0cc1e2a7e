"""Kubernetes manifests: what trains, what it asks for, what it runs."""

import pytest

from trainlint.documents import Scalar
from trainlint.documents.tree import Place
from trainlint.formats.launch.accelerators import binary_size, kubernetes_quantity

from .drafting import fragments
from .launching import files, launcher, place, said, taken

GIB = 1 << 30

TRAINING = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  nprocPerNode: "4"
  runPolicy: {activeDeadlineSeconds: 7200}
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template: &pod
        spec:
          nodeSelector:
            cloud.google.com/gke-accelerator: nvidia-l4
          volumes:
            - name: shared
              emptyDir: {medium: Memory, sizeLimit: 32Gi}
          containers:
            - name: sidecar
              image: side
            - name: pytorch
              image: train:1
              env:
                - {name: LR, value: "1e-4"}
                - {name: TOKEN, valueFrom: {secretKeyRef: {name: hf, key: token}}}
              command: [torchrun, train.py]
              args: ["--learning_rate", "$(LR)", "--deepspeed", ds.json]
              resources:
                requests: {nvidia.com/gpu: 4, memory: 100Gi}
                limits: {nvidia.com/gpu: 4, memory: 128Gi, cpu: "16", ephemeral-storage: 200G}
              volumeMounts:
                - {name: shared, mountPath: /dev/shm}
    Worker:
      replicas: 3
      template: *pod
"""


def test_a_training_job() -> None:
    found = launcher(TRAINING, "kubernetes")
    assert said(found, "device", "launch", "parallel") == {
        "device.name": "nvidia-l4",
        "device.count": 16,
        "device.host_memory": 128 * GIB,
        "launch.accelerated": True,
        "launch.gpus": 4,
        "launch.gpus_requested": 4,
        "launch.memory": 128.0 * GIB,
        "launch.cpus": 16.0,
        "launch.disk": 200 * 10**9,
        "launch.shm": True,
        "launch.shm_memory": 32 * GIB,
        "launch.image": "train:1",
        "launch.time": 7200.0,
        "launch.command": "torchrun train.py --learning_rate $(LR) --deepspeed ds.json",
        "launch.env": {"LR": "1e-4"},
        "parallel.nodes": 4,
        "parallel.per_node": 4,
    }
    assert files(found) == {("script", "train.py"), ("deepspeed", "ds.json")}
    assert place(found, "device.name") == (12, 47)
    assert place(found, "launch.gpus") == (28, 42)


def test_the_controller_decides_how_many_processes_start() -> None:
    text = TRAINING.replace('  nprocPerNode: "4"\n', "")
    assert "parallel.per_node" not in launcher(text, "kubernetes").values
    text = text.replace("[torchrun, train.py]", "[python, train.py]")
    assert said(launcher(text, "kubernetes"), "parallel") == {"parallel.nodes": 4, "parallel.world": 4}


def pod(rest: str, kind: str = "Pod") -> str:
    lines = "".join(f"      {line}\n" for line in rest.splitlines())
    return f"apiVersion: v1\nkind: {kind}\nspec:\n  containers:\n    - name: a\n{lines}"


def test_workloads_are_taken_that_ask_for_accelerators_or_train() -> None:
    assert taken(pod("resources: {limits: {nvidia.com/gpu: 1}}")) == ["kubernetes"]
    assert taken(pod("resources: {requests: {amd.com/gpu: 1}}", "Deployment")) == ["kubernetes"]
    assert taken(pod("command: [torchrun, --nproc_per_node, '2', train.py]")) == ["kubernetes"]
    assert taken(pod("command: [sh, -c, 'cd /x && accelerate launch train.py']")) == ["kubernetes"]


@pytest.mark.parametrize(
    "text",
    [
        pod("image: nginx"),
        pod("command: [python, server.py]\nresources: {limits: {cpu: 1}}"),
        pod("resources: {limits: {nvidia.com/gpu: 0}}"),
        pod("resources: {limits: {nvidia.com/hostdev: 8}}"),
        pod("resources: {limits: {nvidia.com/gpu: 1}}", "DaemonSet"),
        "apiVersion: v1\nkind: ConfigMap\ndata:\n  run.sh: |\n    torchrun train.py\n",
        "apiVersion: v1\nkind: Service\nspec: {ports: []}\n",
        "kind: PyTorchJob\n",
        "apiVersion: v1\nkind: Pod\nspec: {containers: none}\n",
    ],
)
def test_other_manifests_are_left_alone(text: str) -> None:
    assert taken(text) == []


def test_a_training_without_accelerators_says_so() -> None:
    found = launcher(pod("command: [torchrun, train.py]"), "kubernetes")
    assert found.values["launch.accelerated"].value is False
    claimed = launcher(pod("command: [torchrun, train.py]\nresources: {claims: [{name: gpu}]}"), "kubernetes")
    assert "launch.accelerated" not in claimed.values


def test_arguments_of_a_trainer_make_a_run() -> None:
    found = launcher(
        pod(
            "command: [bash, -c]\n"
            "args:\n"
            "  - |\n"
            "    cd /workspace/code\n"
            "    torchrun --nproc_per_node 2 train.py \\\n"
            "      --model_name_or_path a/b --per_device_train_batch_size 4\n"
            "resources: {limits: {nvidia.com/gpu: 2}}\n"
        ),
        "kubernetes",
    )
    assert found.launches
    assert said(found, "batch", "device", "parallel.per_node") == {
        "batch.micro": 4,
        "device.count": 2,
        "parallel.per_node": 2,
    }
    assert place(found, "batch.micro") == (11, 68)
    assert ("script", "train.py") in files(found)


def test_pods_of_a_plain_job_do_not_work_together() -> None:
    job = (
        "apiVersion: batch/v1\nkind: Job\nspec:\n  parallelism: 4\n{mode}  template:\n    spec:\n      containers:\n"
        "        - {{name: a, resources: {{limits: {{nvidia.com/gpu: 2}}}}}}\n"
    )
    assert said(launcher(job.format(mode=""), "kubernetes"), "device", "parallel") == {"device.count": 2}
    indexed = launcher(job.format(mode="  completionMode: Indexed\n"), "kubernetes")
    assert said(indexed, "device", "parallel") == {"device.count": 8, "parallel.nodes": 4}


def test_what_only_a_template_fills_in_is_not_known() -> None:
    text = TRAINING.replace("replicas: 3", "replicas: $WORKERS").replace("limits: {nvidia.com/gpu: 4", "limits: {a: 1")
    found = launcher(text, "kubernetes")
    assert "parallel.nodes" not in found.values
    assert "device.count" not in found.values


def test_a_train_job_and_its_runtime() -> None:
    text = (
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nspec:\n  runtimeRef: {name: torch}\n  trainer:\n"
        "    numNodes: 2\n    numProcPerNode: 8\n    image: x:1\n    command: [torchrun, finetune.py]\n"
        "    resourcesPerNode: {limits: {nvidia.com/gpu: 8}}\n"
    )
    assert said(launcher(text, "kubernetes"), "device", "parallel") == {
        "device.count": 16,
        "parallel.nodes": 2,
        "parallel.per_node": 8,
    }
    alone = launcher(text.replace("    numNodes: 2\n", ""), "kubernetes")  # the runtime says how many
    assert said(alone, "device", "parallel.nodes") == {}
    runtime = (
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: ClusterTrainingRuntime\nspec:\n"
        "  mlPolicy: {numNodes: 1, torch: {numProcPerNode: auto}}\n  template: {spec: {replicatedJobs: [{template: "
        "{spec: {template: {spec: {containers: [{name: node, image: x}]}}}}}]}}\n"
    )
    assert said(launcher(runtime, "kubernetes"), "parallel") == {"parallel.nodes": 1}


def test_the_workers_of_an_mpi_job_train() -> None:
    text = (
        "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nspec:\n  slotsPerWorker: 8\n  mpiReplicaSpecs:\n"
        "    Launcher:\n      replicas: 1\n      template: {spec: {containers: [{name: l, "
        "command: [mpirun, -np, '16', python, train.py]}]}}\n"
        "    Worker:\n      replicas: 2\n      template: {spec: {containers: [{name: w, "
        "resources: {limits: {nvidia.com/gpu: 8}}}]}}\n"
    )
    found = launcher(text, "kubernetes")
    assert said(found, "device", "parallel") == {
        "device.count": 16,
        "parallel.nodes": 2,
        "parallel.per_node": 8,
    }
    assert files(found) == {("script", "train.py")}


@pytest.mark.parametrize(
    ("where", "values"),
    [
        ("nodeSelector: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}", {"device.name": "NVIDIA-A100-SXM4-80GB"}),
        ("nodeSelector: {gpu-type: h100}", {"device.name": "h100"}),
        ("nodeSelector: {gpu-pool: blue}", {}),
        ("nodeSelector: {kubernetes.io/hostname: h100}", {}),
        (
            "nodeSelector: {node.kubernetes.io/instance-type: p4d.24xlarge}",
            {"device.name": "A100 40GB", "device.host_memory": 1152 * GIB},
        ),
        (
            "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
            "[{matchExpressions: [{key: gpu.name, operator: In, values: [l4]}]}]}}}",
            {"device.name": "l4"},
        ),
        (
            "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
            "[{matchExpressions: [{key: gpu.name, operator: In, values: [l4, t4]}]}]}}}",
            {},
        ),
    ],
)
def test_labels_of_nodes_name_the_device(where: str, values: dict[str, object]) -> None:
    text = pod("resources: {limits: {nvidia.com/gpu: 8}}") + f"  {where}\n"
    assert said(launcher(text, "kubernetes"), "device") == {"device.count": 8, **values}


def test_a_slice_of_a_device() -> None:
    found = launcher(pod("resources: {limits: {nvidia.com/mig-1g.10gb: 1}}"), "kubernetes")
    assert said(found, "device") == {"device.name": "mig-1g.10gb", "device.count": 1}


def test_shared_memory() -> None:
    gpu = "resources: {limits: {nvidia.com/gpu: 1}}"
    assert said(launcher(pod(gpu), "kubernetes"), "launch.shm") == {"launch.shm": False}
    assert said(launcher(pod(gpu) + "  hostIPC: true\n", "kubernetes"), "launch.shm") == {"launch.shm": True}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64Gi", 64 * GIB),
        ("64G", 64000000000.0),
        ("500m", 0.5),
        ("1e3", 1000.0),
        ("128974848", 128974848.0),
        ("2k", 2000.0),
        ("64GB", None),
        ("64gi", None),
        ("$MEM", None),
        ("", None),
    ],
)
def test_quantities(text: str, size: float | None) -> None:
    assert kubernetes_quantity(Scalar(text, text, Place("f"))) == size


def test_a_size_that_counts_in_powers_of_1024() -> None:
    sizes = [binary_size(Scalar(text, text, Place("f")), "g") for text in ("1g", "64", "512m", "16GiB", "2TB", "x")]
    assert sizes == [GIB, 64 * GIB, GIB // 2, 16 * GIB, 2048 * GIB, None]


def test_each_document_of_a_file_is_a_launcher() -> None:
    text = pod("resources: {limits: {nvidia.com/gpu: 1}}")
    assert [one.format for one in fragments(text + "---\n" + pod("image: x") + "---\n" + text)] == ["kubernetes"] * 2
