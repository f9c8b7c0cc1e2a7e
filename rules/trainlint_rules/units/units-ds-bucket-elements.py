"""A DeepSpeed bucket size that was meant in bytes or megabytes: buckets count elements."""

import re
from collections.abc import Iterator

from trainlint.api import FileView, Found, Scalar, rule

KEYS = (
    "zero_optimization.reduce_bucket_size",
    "zero_optimization.allgather_bucket_size",
    "zero_optimization.stage3_prefetch_bucket_size",
)
UNIT = re.compile(r"\s*[\d._]+(?:[eE][+-]?\d+)?\s*[kKmMgGtT]i?[bB]?\s*")
MOST = 2e9
"""4 GB in 16 bits: more than any bucket that helps, about what half a gigabyte in bits or 2 GB in bytes looks like."""
LEAST = 2000
"""Fewer elements than one row of a layer: megabytes were meant."""


@rule(severity="warning", on="file", formats=("deepspeed",), outranks=("schema-wrong-type",))
def check(view: FileView) -> Iterator[Found]:
    for key in KEYS:
        entry = view.fragment.entry(key)
        node = entry.value if entry is not None else None
        if not isinstance(node, Scalar):
            continue
        size, said = node.value, f"`{key}: {node.raw}`"
        help_line = "write the number of elements: `5e8` is 1 GB in 16 bits"
        if isinstance(size, str) and UNIT.fullmatch(size):
            message = f"{said} is a text with a unit, DeepSpeed wants a number of elements"
            yield Found(at=node, message=message, help=help_line, severity="error")
        elif isinstance(size, int | float) and not isinstance(size, bool) and size > MOST:
            message = f"{said} is {2 * size / 1e9:.3g} GB in 16 bits: buckets count elements, not bytes"
            yield Found(at=node, message=message, help=help_line)
        elif isinstance(size, int | float) and not isinstance(size, bool) and 0 < size < LEAST:
            message = f"{said} is {2 * size:.0f} bytes in 16 bits: buckets count elements, not megabytes"
            yield Found(at=node, message=message, help=help_line)
