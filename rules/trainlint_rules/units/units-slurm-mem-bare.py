"""A job's memory without a unit, which Slurm counts in MB, or with one that Slurm does not have."""

import re
from collections.abc import Iterator

from trainlint.api import Edit, FileView, Fix, Found, rule, started

LEAST = {"mem": 1024, "mem-per-gpu": 1024, "mem-per-cpu": 128}
"""Megabytes below which no training starts: Python with its framework and a CUDA context takes more than 1 GB."""
SIZE = re.compile(r"(\d+)(?:(\.\d+)?\s*([A-Za-z]+))?")


@rule(severity="error", on="file", outranks=("launch-host-mem-too-small",))
def check(view: FileView) -> Iterator[Found]:
    for name, least in LEAST.items():
        directive = started.directives(view.fragment).get(name)
        found = SIZE.fullmatch(directive.text) if directive is not None else None
        if directive is None or found is None:
            continue
        number, unit = int(found[1]), found[3] or ""
        if not unit and not found[2] and 0 < number < least:
            text, safety = f"{number}G", "unsafe"
            message = f"`--{name}={directive.text}` is {number} MB: Slurm counts in megabytes without a unit"
        elif unit.upper() in ("MB", "GB", "TB", "KB", "MIB", "GIB", "TIB", "KIB") and not found[2]:
            text, safety = f"{number}{unit[0].upper()}", "safe"
            message = f"`{unit}` is no unit of Slurm's `--{name}`: K, M, G and T are, by powers of 1024"
        else:
            continue
        yield Found(
            at=directive.place,
            message=message,
            help=f"write `--{name}={text}`",
            fix=Fix((Edit(directive.place, text),), "safe" if safety == "safe" else "unsafe"),
            severity="warning" if unit else "error",
        )
