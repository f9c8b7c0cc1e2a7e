"""Small configs that say on which devices a job runs, each in its tool's words: Axolotl's cloud configs, the
HyperPod command line, NeMo's cluster configs, and a `cluster` of nodes with a GPU type.

Which keys these tools have is data (`cluster-job.schema.json`): a dialect's keys stand below its name.
"""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node, Scalar
from trainlint.formats.format import Format
from trainlint.formats.fragment import Fragment, Reference

NAME = "cluster-job"
DIALECTS: tuple[tuple[str, frozenset[str], frozenset[str]], ...] = (
    ("axolotl-cloud", frozenset(("gpu", "gpu_count")), frozenset(("provider", "project_name", "secrets", "volumes"))),
    ("hyperpod", frozenset(("training_cfg", "cluster")), frozenset(("container", "base_results_dir", "env_vars"))),
    ("nemo-cluster", frozenset(("gpus_per_node",)), frozenset(("partition", "exclusive", "srun_args", "nodelist"))),
    ("cluster", frozenset(("cluster",)), frozenset(("parallelism", "nccl", "framework", "model"))),
)
"""Name, the keys that must be there, and those of which one must."""


def recognise(document: Document, root: Node | None) -> int:
    """The keys of one of the tools, with devices."""
    return 70 if _dialect(root) else 0


def read(document: Document, root: Node | None) -> Fragment:
    """Devices, machines and memory."""
    from trainlint.formats.launch import job
    from trainlint.formats.launch.accelerators import Values, named, total
    from trainlint.formats.launch.embedded import Source
    from trainlint.formats.reading import convert, marked

    assert isinstance(root, Mapping)
    dialect = _dialect(root)
    values: Values = {}
    references: list[Reference] = []
    for dotted, key in marked(NAME).items():
        section, _, inner = dotted.partition(".")
        node = root.find(inner) if section == dialect else None
        if not isinstance(node, Scalar):
            continue
        if key.role and isinstance(node.value, str):
            references.append(Reference("script", node.value, node.place, inner))
        elif inner.endswith("instance_type"):
            values |= named(NAME, inner, node)
        elif key.path and (value := convert(NAME, inner, node, key)) is not None:
            values[key.path] = value
    if dialect != "nemo-cluster":  # its jobs say elsewhere how many machines they take
        total(values)
    env = job.variables(Source(document), root.get("env_vars"), root.get("environment"))
    values |= job.environment(env, NAME)
    fragment = job.fragment(NAME, document, root, (), values)
    fragment.references += references
    return fragment


def _dialect(root: Node | None) -> str:
    if not isinstance(root, Mapping):
        return ""
    names = root.names()
    for name, needed, beside in DIALECTS:
        if names >= needed and names & beside:
            cluster = root.get("cluster")
            if name != "cluster" or (isinstance(cluster, Mapping) and "gpus_per_node" in cluster):
                return name
    return ""


FORMAT = Format(NAME, "Devices of a job in a tool's own words", recognise, read)
