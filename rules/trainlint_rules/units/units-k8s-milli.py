"""A size in Kubernetes with the suffix `m`, which is a thousandth."""

import re
from collections.abc import Iterator

from trainlint.api import FileView, Found, rule, scalars, set_value

SIZES = ("memory", "ephemeral-storage", "storage", "sizeLimit")
MILLI = re.compile(r"(\d+(?:\.\d+)?)m")
FORMATS = ("kubernetes", "ray-cluster", "ray-job", "helm-values", "cluster-job")


@rule(severity="error", on="file", formats=FORMATS, outranks=("launch-host-mem-too-small",))
def check(view: FileView) -> Iterator[Found]:
    for root in view.document.roots:
        for path, entry, node in scalars(root):
            if entry is None or entry.name not in SIZES or not isinstance(node.value, str):
                continue
            found = MILLI.fullmatch(node.value)
            if found is None or "annotations" in path:
                continue
            size = float(found[1]) / 1000
            yield Found(
                at=node,
                message=f"`{entry.name}: {node.raw}` is {size:g} bytes: `m` is a thousandth",
                help=f"write `{found[1]}Mi`",
                fix=set_value(node, node.raw.replace(node.value, f"{found[1]}Mi"), "safe"),
            )
