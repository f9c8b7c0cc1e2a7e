"""The data of a run: from the settings, or measured on a local file that the config names."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint.documents import Mapping, Place, Scalar
from trainlint.formats import Draft, Fragment
from trainlint.resolve.join import find_file
from trainlint.resolve.stated import Stated
from trainlint.resolve.versions.requirement import shown
from trainlint.run import Value

if TYPE_CHECKING:
    from trainlint.lengths import Lengths

DATA_FILES = (".json", ".jsonl", ".csv", ".parquet")
INFO = "dataset_info.json"
"""LLaMA-Factory's list of data sets."""


def add_data(draft: Draft, settings: Stated, origin: Path) -> None:
    """Fill `data.*`. Of lengths estimated from characters the lower bound counts, so that rules speak when certain."""
    _registry(draft, origin)
    if settings.rows is not None:
        draft.values["data.rows"] = settings.rows  # type: ignore[assignment]
    for name, value in settings.tokens.items():
        draft.values[f"data.tokens.{name}"] = value  # type: ignore[assignment]
    if settings.tokens:
        return
    files = _files(draft.fragments[0], origin)
    if len(files) != 1:
        return  # the lengths of a mixture are those of its parts, in shares that the trainer decides
    lengths = _measured(files[0], _tokenizer(draft, origin), files[0].stat().st_mtime_ns)
    if lengths is None:
        return
    note = f"{files[0].name}: {lengths.note}"
    file = shown(files[0])
    draft.values["data.files"] = Value((file,), "derived", place=Place(file), note=note)
    draft.derive("data.rows", lengths.rows, note, "sample")
    draft.derive("data.estimated", not lengths.exact, note)
    for name, (low, _) in lengths.tokens.items():
        draft.derive(f"data.tokens.{name}", low, note, "token")


@lru_cache(maxsize=256)
def _measured(path: Path, tokenizer: Path | None, changed: int) -> Lengths | None:
    from trainlint.lengths import measure  # costs as much as a small file; most configs name no local data

    return measure(path, tokenizer)


def _files(root: Fragment, origin: Path) -> list[Path]:
    found: dict[Path, None] = {}
    for reference in root.references:
        if reference.role != "dataset":
            continue
        for name in reference.text.split(","):
            path = _file(name.strip(), origin) or _listed(root, name.strip(), origin)
            if path is not None:
                found[path] = None
    return list(found)


def _file(name: str, origin: Path) -> Path | None:
    path = find_file(origin, name)
    return path if path is not None and path.suffix in DATA_FILES else None


def _listed(root: Fragment, name: str, origin: Path) -> Path | None:
    """A data set that a `dataset_info.json` in the data folder describes."""
    folder = root.written("dataset_dir")
    for place in (f"{folder}/{INFO}" if isinstance(folder, str) else f"data/{INFO}", INFO):
        info = find_file(origin, place)
        if info is None:
            continue
        try:
            described = json.loads(info.read_text("utf-8")).get(name)
        except (OSError, ValueError, AttributeError, RecursionError):
            return None
        file = described.get("file_name") if isinstance(described, dict) else None
        return _file(str(info.parent / file), origin) if isinstance(file, str) else None
    return None


def _registry(draft: Draft, origin: Path) -> None:
    """The names in LLaMA-Factory's list of data sets, where the list is there."""
    root = draft.fragments[0]
    if root.framework != "llamafactory" or "dataset" not in root.keys:
        return
    folder = root.written("dataset_dir")
    info = find_file(origin, f"{folder if isinstance(folder, str) else 'data'}/{INFO}")
    if info is None:
        return
    try:
        listed = json.loads(info.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return
    if isinstance(listed, dict):
        file = shown(info)
        names = tuple(str(name) for name in listed)
        draft.values.setdefault("data.registered", Value(names, "derived", place=Place(file), note=file))


def _tokenizer(draft: Draft, origin: Path) -> Path | None:
    """A `tokenizer.json` in the model's local folder, or one that the config names."""
    root = draft.fragments[0].root
    named = root.get("tokenizer") if isinstance(root, Mapping) else None
    texts = [reference.text for reference in draft.fragments[0].references if reference.role in ("tokenizer", "model")]
    if isinstance(named, Scalar) and isinstance(named.value, str):
        texts.append(named.value)
    for text in texts:
        path = find_file(origin, text, ("tokenizer.json",))
        if path is not None and path.name == "tokenizer.json":
            return path
    return None
