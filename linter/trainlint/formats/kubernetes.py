"""Kubernetes manifests: Kubeflow's training jobs, Ray clusters, and plain workloads that ask for accelerators or train.

`launch.gpus` is what one pod gets; pods of a training job, of a JobSet or of a Ray cluster are the run's machines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlint.documents import Document, Entry, Mapping, Node, Scalar, Sequence
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment

if TYPE_CHECKING:
    from trainlint.formats.launch.accelerators import Values
    from trainlint.formats.launch.command_line import Command
    from trainlint.formats.launch.embedded import Source
    from trainlint.formats.launch.kubernetes_pods import Pod

NAME = "kubernetes"
TRAINING = frozenset(
    (
        "PyTorchJob", "TrainJob", "TrainingRuntime", "ClusterTrainingRuntime", "MPIJob", "TFJob", "JAXJob", "PaddleJob",
        "XGBoostJob", "HyperPodPyTorchJob", "MXJob",
    )
)  # fmt: skip
"""Kinds that exist for training."""
RUNTIMES = frozenset(("TrainingRuntime", "ClusterTrainingRuntime"))
"""Kinds that a job completes: what they do not ask for, the job may."""
GROUPS = frozenset(("RayCluster", "RayJob", "JobSet", "LeaderWorkerSet", "Workload"))
"""Kinds whose pods work together."""
WORKLOADS = frozenset(("Job", "CronJob", "Pod", "Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"))


def recognise(document: Document, root: Node | None) -> int:
    """A kind that exists for training; a workload that asks for accelerators, or whose command trains."""
    if not isinstance(root, Mapping) or "kind" not in root or "apiVersion" not in root:
        return 0
    kind = _kind(root)
    if kind in TRAINING:
        return 95
    if kind not in GROUPS and kind not in WORKLOADS:
        return 0
    from trainlint.formats.launch import job
    from trainlint.formats.launch.embedded import Source
    from trainlint.formats.launch.kubernetes_pods import accelerators, pods

    found = list(pods(root))
    if any(accelerators(pod.container) for pod in found):
        return 90
    if not job.TRAINS.search(document.text):
        return 0
    source = Source(document)
    return 90 if any(job.trainings(_commands(source, pod.container)[0]) for pod in found) else 0


def read(document: Document, root: Node | None) -> Fragment:
    """What the pods that train ask for, and what they run."""
    from trainlint.formats.launch import job
    from trainlint.formats.launch.accelerators import total
    from trainlint.formats.launch.embedded import Source
    from trainlint.formats.launch.kubernetes_pods import accelerated, asked, placed, pods, shared_memory, variables

    assert isinstance(root, Mapping)
    source = Source(document)
    kind = _kind(root)
    found = list(pods(root))
    working = _working(source, found)
    values: Values = {}
    commands: tuple[Command, ...] = ()
    env = {}
    folder = ""
    counted = kind != "TrainJob"
    if working:
        pod = working[0]
        values = placed(pod.spec)
        labelled = values.pop("launch.gpus", None)
        values |= asked(pod.container) | shared_memory(pod.spec, pod.container)
        if labelled is not None and not pod.helps:
            values.setdefault("launch.gpus", labelled)
        if kind not in RUNTIMES:
            values |= accelerated(pod)
        _image(values, pod.container)
        env = variables(source, pod.container)
        commands, folder = _commands(source, pod.container)
        if kind == "MPIJob" or not job.trainings(commands):
            others = (_commands(source, other.container) for other in found if other is not pod)
            commands, folder = next((run for run in others if job.trainings(run[0])), (commands, folder))
        if kind in TRAINING or kind in GROUPS or _indexed(root):
            counted = _machines(values, [one for one in working if _same(one, pod)])
    if kind == "TrainJob" and isinstance(trainer := root.find("spec.trainer"), Mapping):
        values |= asked(Mapping(tuple(_as_resources(trainer)), trainer.place))
        _image(values, trainer)
        env |= variables(source, trainer)
        own, folder = _commands(source, trainer)
        commands = own or commands
    if kind == "RayJob" and isinstance(entry := root.find("spec.entrypoint"), Scalar):
        commands = source.shell(entry)
    _policies(root, values)
    _deadline(root, values)
    if counted or "parallel.nodes" in values:
        total(values)
    values |= job.environment(env, NAME)
    managed = kind in TRAINING and kind != "MPIJob"
    return job.fragment(NAME, document, root, commands, values, folder=folder, managed=managed)


def complete(draft: Draft) -> None:
    """The defaults of the trainer whose arguments a container's command carries."""
    from trainlint.formats.launch import job

    job.complete(draft)


def _kind(root: Mapping) -> str:
    kind = root.get("kind")
    return str(kind.value) if isinstance(kind, Scalar) else ""


def _working(source: Source, found: list[Pod]) -> list[Pod]:
    """The pods that train: those that ask for accelerators, else those that run a training, else all but helpers."""
    from trainlint.formats.launch import job
    from trainlint.formats.launch.kubernetes_pods import accelerators

    return (
        [pod for pod in found if accelerators(pod.container)]
        or [pod for pod in found if job.trainings(_commands(source, pod.container)[0])]
        or [pod for pod in found if not pod.helps]
    )


def _same(one: Pod, pod: Pod) -> bool:
    """Whether two templates ask for as many devices: else machines differ, and no number says what one gets."""
    from trainlint.formats.launch.kubernetes_pods import accelerators

    def counts(owner: Pod) -> list[object]:
        return [
            str(entry.value.value)
            for entry in accelerators(owner.container).values()
            if isinstance(entry.value, Scalar)
        ]

    return counts(one) == counts(pod)


def _commands(source: Source, owner: Mapping) -> tuple[tuple[Command, ...], str]:
    """A container's `command` and `args` as commands, and the folder they run in."""
    from trainlint.formats.launch.kubernetes_pods import variables

    known = {name: cells for name, (_, cells) in variables(source, owner).items()}
    nodes: list[Scalar] = []
    for key in ("command", "args"):
        match owner.get(key):
            case Sequence() as listed:
                nodes += [item for item in listed.items if isinstance(item, Scalar)]
            case Scalar() as one if isinstance(one.value, str):
                nodes.append(one)
    folder = owner.get("workingDir")
    at = folder.value if isinstance(folder, Scalar) and isinstance(folder.value, str) else ""
    return source.executed(nodes, known), at


def _image(values: Values, owner: Mapping) -> None:
    from trainlint.formats.fragment import say

    image = owner.get("image")
    if isinstance(image, Scalar) and isinstance(image.value, str):
        values["launch.image"] = say(NAME, "image", image, image.value)


def _as_resources(trainer: Mapping) -> list[Entry]:
    entry = trainer.entry("resourcesPerNode")
    return [] if entry is None else [entry._replace(key=Scalar("resources", "resources", entry.key.place))]


def _machines(values: Values, working: list[Pod]) -> bool:
    """The number of pods that train, where it is written; whether it is known."""
    from trainlint.formats.fragment import say

    counts = [pod.count for pod in working]
    at = next((pod.counted for pod in working if pod.counted is not None and pod.count != 1), None)
    at = at or next((pod.counted for pod in working if pod.counted is not None), None)
    known = [count for count in counts if count is not None]
    if at is not None and len(known) == len(counts):
        values["parallel.nodes"] = say(NAME, "replicas", at, sum(known))
    return len(known) == len(counts)


def _policies(root: Mapping, values: Values) -> None:
    """Machines and processes as the job's own fields say them."""
    from trainlint.formats.fragment import say
    from trainlint.formats.reading import whole

    for path, keys in (
        ("parallel.nodes", ("spec.trainer.numNodes", "spec.mlPolicy.numNodes")),
        (
            "parallel.per_node",
            (
                "spec.trainer.numProcPerNode", "spec.mlPolicy.torch.numProcPerNode", "spec.mlPolicy.mpi.numProcPerNode",
                "spec.nprocPerNode", "spec.slotsPerWorker",
            ),
        ),
    ):  # fmt: skip
        for key in keys:
            node = root.find(key)
            if isinstance(node, Scalar):
                count = whole(node.value)
                if count is not None:
                    values[path] = say(NAME, key.rpartition(".")[2], node, count)
                else:
                    values.pop(path, None)
                break


def _deadline(root: Mapping, values: Values) -> None:
    from trainlint.formats.fragment import say
    from trainlint.formats.reading import real

    for key in ("spec.activeDeadlineSeconds", "spec.runPolicy.activeDeadlineSeconds"):
        node = root.find(key)
        if isinstance(node, Scalar) and (seconds := real(node.value)) is not None:
            values["launch.time"] = say(NAME, "activeDeadlineSeconds", node, seconds)


def _indexed(root: Mapping) -> bool:
    """Whether a Job's pods know of each other."""
    mode = root.find("spec.completionMode")
    return isinstance(mode, Scalar) and mode.value == "Indexed"


FORMAT = Format(NAME, "Kubernetes manifest that trains or asks for accelerators", recognise, read, complete)
