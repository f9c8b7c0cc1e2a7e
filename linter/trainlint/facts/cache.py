"""Models that somebody fetched: their configs and counts, kept in the user's cache folder and read from there alone.

`TRAINLINT_CACHE` names the folder; else it is `trainlint` in the system's place for caches.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ID = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")
"""How a hub names models."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A model as a hub described it. What the hub does not say is None."""

    id: str
    config: Mapping[str, Any]
    parameters: int | None
    nbytes: int | None
    dtype: str | None
    source: str


def folder() -> Path:
    """Where fetched models are kept."""
    if named := os.environ.get("TRAINLINT_CACHE"):
        return Path(named)
    home = Path(os.path.expanduser("~"))
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "trainlint" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "trainlint"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "trainlint"


def path_of(model_id: str) -> Path:
    """The file of a model; `/` in its id is `--`."""
    return folder() / "models" / f"{model_id.replace('/', '--')}.json"


def find(model_id: str) -> Fetched | None:
    """The model of that id where it was fetched, else None."""
    if not ID.fullmatch(model_id) or ".." in model_id:
        return None
    return _read(path_of(model_id))


def every() -> tuple[Fetched, ...]:
    """All fetched models, by id."""
    found = (_read(path) for path in sorted((folder() / "models").glob("*.json")))
    return tuple(model for model in found if model is not None)


def _read(path: Path) -> Fetched | None:
    try:
        loaded = json.loads(path.read_text("utf-8"))
        config = loaded["config"]
        if not isinstance(config, dict):
            return None
        counts = {name: loaded.get(name) for name in ("parameters", "nbytes")}
        dtype = loaded.get("dtype")
        return Fetched(
            str(loaded["id"]),
            config,
            **{name: count if isinstance(count, int) else None for name, count in counts.items()},
            dtype=dtype if isinstance(dtype, str) else None,
            source=str(loaded.get("source", "")),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def keep(model: Fetched) -> Path:
    """Write a fetched model; raises OSError where that can not be done. Whoever reads sees the old or the new one."""
    path = path_of(model.id)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(
        {
            "id": model.id,
            "source": model.source,
            "parameters": model.parameters,
            "nbytes": model.nbytes,
            "dtype": model.dtype,
            "config": model.config,
        },
        indent=1,
    )
    fresh = path.with_suffix(f".{os.getpid()}.part")
    fresh.write_text(text + "\n", "utf-8")
    fresh.replace(path)
    return path
