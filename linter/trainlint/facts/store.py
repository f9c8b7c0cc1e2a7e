"""The data files of `trainlint_schemas`, and those that plugins add: each read once, when first asked for."""

from __future__ import annotations

import json
import os
from functools import cache
from typing import Any

import trainlint_schemas

ROOT = os.path.dirname(trainlint_schemas.__file__)
_added: dict[str, list[tuple[str, dict[str, Any]]]] = {}


def add(name: str, path: str) -> None:
    """Have the facts of that name (`devices`, `models`) read from another file of the same form, too.

    Its lists go behind the built-in ones, its tables into theirs. To be called before the first lookup. Raises OSError
    or ValueError for a file that can not be read, or that holds something else than lists and tables by name.
    """
    if any(known == path for known, _ in _added.get(name, ())):
        return
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    if not isinstance(content, dict) or not all(isinstance(value, list | dict) for value in content.values()):
        raise ValueError("lists and tables by name belong here")
    if not os.path.isfile(os.path.join(ROOT, "facts", f"{name}.json")):
        raise ValueError(f"there are facts of {', '.join(names('facts'))}")
    _added.setdefault(name, []).append((path, content))
    read.cache_clear()


@cache
def read(folder: str, name: str) -> Any:
    """The content of `<folder>/<name>.json`; FileNotFoundError when there is none."""
    with open(os.path.join(ROOT, folder, f"{name}.json"), encoding="utf-8") as file:
        content = json.load(file)
    for _, further in _added.get(name, ()) if folder == "facts" else ():
        for key, value in further.items():
            known = content.get(key)
            content[key] = [*(known or ()), *value] if isinstance(value, list) else {**(known or {}), **value}
    return content


@cache
def names(folder: str) -> tuple[str, ...]:
    """The names of the files in `folder`, without their ending, sorted."""
    return tuple(sorted(name[:-5] for name in os.listdir(os.path.join(ROOT, folder)) if name.endswith(".json")))
