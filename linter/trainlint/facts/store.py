"""The data files of `trainlint_schemas`: each read once, when first asked for."""

from __future__ import annotations

import json
import os
from functools import cache
from typing import Any

import trainlint_schemas

ROOT = os.path.dirname(trainlint_schemas.__file__)


@cache
def read(folder: str, name: str) -> Any:
    """The content of `<folder>/<name>.json`; FileNotFoundError when there is none."""
    with open(os.path.join(ROOT, folder, f"{name}.json"), encoding="utf-8") as file:
        return json.load(file)


@cache
def names(folder: str) -> tuple[str, ...]:
    """The names of the files in `folder`, without their ending, sorted."""
    return tuple(sorted(name[:-5] for name in os.listdir(os.path.join(ROOT, folder)) if name.endswith(".json")))
