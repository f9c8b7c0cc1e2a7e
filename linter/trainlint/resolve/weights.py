"""How large a model's weights are and how they are stored, from the headers of its safetensors files.

A file begins with eight bytes, the length of a JSON header that gives each tensor's dtype and shape; nothing else of it
is read. Source: the safetensors format, https://github.com/huggingface/safetensors#format.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from pathlib import Path

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
HEADER_LIMIT = 32 << 20
"""Longer headers are not read (bytes); a thousand tensors take a tenth of a megabyte."""
SHARDS = 256
"""Of more files than these only the index is read."""
DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8",
    "F8_E5M2": "float8",
}
"""safetensors' names of float types → the vocabulary's."""


@dataclass(frozen=True, slots=True)
class Weights:
    """`nbytes` of all tensors; `parameters` and `dtype` (that of most of them) where no tensor holds packed weights."""

    nbytes: int | None
    parameters: int | None
    dtype: str | None
    note: str


def weights(folder: Path) -> Weights | None:
    """The weights in a model's folder, or None where no safetensors file or index says them."""
    index = folder / INDEX
    if index.is_file():
        return _sharded(folder, index)
    single = folder / SINGLE
    header = _header(single) if single.is_file() else None
    return counted([header], SINGLE) if header is not None else None


def _sharded(folder: Path, index: Path) -> Weights | None:
    try:
        loaded = json.loads(index.read_text("utf-8"))
        metadata, places = loaded.get("metadata"), loaded.get("weight_map")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    metadata = metadata if isinstance(metadata, dict) else {}
    names = {name for name in places.values() if isinstance(name, str)} if isinstance(places, dict) else set()
    if names and len(names) <= SHARDS and all("/" not in name for name in names):
        headers = [_header(folder / name) for name in sorted(names)]
        known = [header for header in headers if header is not None]
        if len(known) == len(names):
            return counted(known, f"the headers of {len(names)} safetensors files")
    return from_index(metadata)


def from_index(metadata: dict[str, object]) -> Weights | None:
    """What the `metadata` of an index say."""
    size, count = metadata.get("total_size"), metadata.get("total_parameters")
    if isinstance(size, float) and size.is_integer():
        size = int(size)
    if not isinstance(size, int) or isinstance(size, bool):
        return None
    return Weights(size, count if isinstance(count, int) else None, None, INDEX)


def counted(headers: Iterable[dict[str, object]], note: str) -> Weights:
    """The sums of some headers."""
    nbytes = 0
    elements: Counter[str] = Counter()
    for header in headers:
        for name, tensor in header.items():
            if name == "__metadata__" or not isinstance(tensor, dict):
                continue
            shape, offsets = tensor.get("shape"), tensor.get("data_offsets")
            if isinstance(shape, list) and all(isinstance(side, int) for side in shape):
                elements[str(tensor.get("dtype"))] += prod(shape)
            if isinstance(offsets, list) and len(offsets) == 2 and all(isinstance(end, int) for end in offsets):
                nbytes += offsets[1] - offsets[0]
    return Weights(nbytes, *of_elements(elements), note)


def of_elements(elements: Counter[str]) -> tuple[int | None, str | None]:
    """Parameters and dtype of so many elements by safetensors' type; None where whole numbers hold packed weights."""
    floats = {name: count for name, count in elements.items() if name in DTYPES}
    total = sum(elements.values())
    if not floats or total - sum(floats.values()) > total // 1000:  # a few positions or counters are no weights
        return None, None
    return sum(floats.values()), DTYPES[max(floats, key=lambda name: floats[name])]


def _header(path: Path) -> dict[str, object] | None:
    try:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= min(HEADER_LIMIT, os.path.getsize(path) - 8):
                return None
            loaded = json.loads(file.read(length))
    except (OSError, ValueError, RecursionError):
        return None
    return loaded if isinstance(loaded, dict) else None
