"""Values of Helm charts that train or ask for accelerators: a workload's GPUs, or Kubernetes resources at the top."""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node, Scalar
from trainlint.formats.format import Format
from trainlint.formats.fragment import Fragment, say

NAME = "helm-values"


def recognise(document: Document, root: Node | None) -> int:
    """A workload with GPUs, or accelerators among the resources at the top."""
    if not isinstance(root, Mapping) or root.names() & {"apiVersion", "kind", "run", "commands", "services"}:
        return 0
    workload = root.get("workload")
    if isinstance(workload, Mapping) and isinstance(gpus := workload.get("gpus"), Scalar):
        return 80 if isinstance(gpus.value, int) and gpus.value else 0
    if not isinstance(root.find("resources.limits"), Mapping) or "image" not in root:
        return 0
    from trainlint.formats.launch.kubernetes_pods import accelerators

    return 70 if accelerators(root) else 0


def read(document: Document, root: Node | None) -> Fragment:
    """The devices, the image, the memory and the variables that the chart is given."""
    from trainlint.formats.launch import job
    from trainlint.formats.launch.accelerators import kubernetes_quantity, total
    from trainlint.formats.launch.embedded import Source
    from trainlint.formats.launch.kubernetes_pods import asked, placed

    assert isinstance(root, Mapping)
    values = placed(root)
    labelled = values.pop("launch.gpus", None)
    values |= asked(root)
    if labelled is not None:
        values.setdefault("launch.gpus", labelled)
    gpus, image = root.find("workload.gpus"), root.find("workload.image") or root.get("image")
    if isinstance(gpus, Scalar) and isinstance(gpus.value, int):
        values["device.count"] = say(NAME, "gpus", gpus, gpus.value)
    if isinstance(image, Scalar) and isinstance(image.value, str):
        values["launch.image"] = say(NAME, "image", image, image.value)
    shared = root.find("volumes.sharedMemorySize")
    size = kubernetes_quantity(shared)
    if isinstance(shared, Scalar) and size is not None:
        values["launch.shm"] = say(NAME, "sharedMemorySize", shared, True)
        values["launch.shm_memory"] = say(NAME, "sharedMemorySize", shared, int(size), "byte")
    total(values)
    env = job.variables(Source(document), root.find("workload.envs"), root.get("env"))
    values |= job.environment(env, NAME)
    return job.fragment(NAME, document, root, (), values)


FORMAT = Format(NAME, "Helm values that ask for accelerators", recognise, read)
