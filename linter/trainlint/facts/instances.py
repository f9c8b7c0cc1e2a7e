"""Cloud instance types: which devices, how many, and how much host memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from trainlint.facts import store

GIB = 1 << 30


@dataclass(frozen=True)
class Instance:
    """An instance type. `device`: a name that `devices.find` knows; `count`: of them; None: not known.

    `slice`: bytes of device memory where the instance has only a share of one device. `host_memory`: bytes.
    """

    name: str
    cloud: str
    device: str
    count: int
    slice: int | None
    host_memory: int | None
    vcpus: int | None
    source: str


@cache
def _entries() -> dict[str, tuple[str, dict[str, Any]]]:
    return {name.lower(): (name, entry) for name, entry in store.read("facts", "instances")["instances"].items()}


@cache
def find(name: str) -> Instance | None:
    """The instance type of that name, without regard to case; "ml.p4d.24xlarge" is p4d.24xlarge. None: not known."""
    wanted = name.strip().lower()
    found = _entries().get(wanted) or _entries().get(wanted.removeprefix("ml.")) or _entries().get(f"tpu:{wanted}")
    if found is None:
        return None
    canonical, entry = found
    share, host = entry.get("slice_gb"), entry.get("host_gib")
    source = store.read("facts", "instances")["sources"][entry["source"]]
    return Instance(
        name=canonical,
        cloud=entry["cloud"],
        device=entry["device"],
        count=entry["count"],
        slice=None if share is None else share * GIB,
        host_memory=None if host is None else int(host * GIB),
        vcpus=entry.get("vcpus"),
        source=f"{source}; {entry['note']}" if "note" in entry else source,
    )


@cache
def every() -> tuple[str, ...]:
    """All known instance types, sorted."""
    return tuple(name for name, _ in _entries().values())


def nearest(name: str, count: int = 3) -> tuple[str, ...]:
    """Known instance types with a name like the given one, the likest first."""
    from difflib import get_close_matches

    return tuple(_entries()[close][0] for close in get_close_matches(name.lower(), _entries(), n=count, cutoff=0.6))
