"""Which versions of the frameworks a tree asks for: requirement files, `pyproject.toml` and lock files, nearest first.

An exact pin is a version (`4.41.2`), everything else stays a specifier (`>=4.46,<5`). Lock files win over what asks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from trainlint.documents import Place
from trainlint.run import Value

PACKAGES = frozenset(
    [
        "accelerate",
        "axolotl",
        "bitsandbytes",
        "deepspeed",
        "flash-attn",
        "lightning",
        "litgpt",
        "liger-kernel",
        "llamafactory",
        "llm-foundry",
        "mlx",
        "mlx-lm",
        "ms-swift",
        "nemo-toolkit",
        "openrlhf",
        "oumi",
        "peft",
        "pytorch-lightning",
        "torch",
        "torchao",
        "torchtitan",
        "torchtune",
        "transformers",
        "trl",
        "unsloth",
        "verl",
        "vllm",
    ]
)
LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml")
LIMIT = 8 << 20
"""Lock files larger than this are not read (bytes)."""

_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*(?P<spec>(?:(?:===|==|~=|!=|>=|<=|>|<)\s*[\w.*+!-]+\s*(?:,\s*|(?=[;#\s]|$)))*)"
    r"\s*(?:;(?P<marker>.*))?(?:#.*)?$"
)
_LOCKED = re.compile(r'^name = "(?P<name>[\w.-]+)"\nversion = "(?P<version>[\w.+!-]+)"', re.MULTILINE)
_QUOTED = re.compile(r"""["']([A-Za-z0-9][^"'\n]*)["']""")


def versions_at(folder: Path) -> Mapping[str, Value[str]]:
    """The versions known in a folder, by package."""
    return _versions_at(folder.resolve())


@lru_cache(maxsize=4096)
def _versions_at(folder: Path) -> Mapping[str, Value[str]]:
    found: dict[str, Value[str]] = {}
    if folder.parent != folder and not os.path.exists(folder / ".git"):
        found.update(_versions_at(folder.parent))
    found.update(_asked(folder))
    found.update(_locked(folder))
    return found


def _asked(folder: Path) -> Iterator[tuple[str, Value[str]]]:
    try:
        names = sorted(path.name for path in folder.iterdir() if path.name.startswith("requirements"))
    except OSError:
        return
    for name in names:
        if name.endswith((".txt", ".in")):
            yield from _lines(folder / name)
    path = folder / "pyproject.toml"
    if os.path.isfile(path):
        for at, line in _text(path):
            for quoted in _QUOTED.finditer(line):
                yield from _requirement(path, at, quoted[1], quoted.start(1))


def _lines(path: Path) -> Iterator[tuple[str, Value[str]]]:
    for at, line in _text(path):
        yield from _requirement(path, at, line.strip(), len(line) - len(line.lstrip()))


def _requirement(path: Path, line: int, text: str, start: int) -> Iterator[tuple[str, Value[str]]]:
    found = _REQUIREMENT.match(text)
    if found is None or not found["spec"] or "extra" in (found["marker"] or ""):
        return
    name = re.sub(r"[-_.]+", "-", found["name"]).lower()
    if name in PACKAGES:
        spec = re.sub(r"\s+", "", found["spec"]).strip(",")
        pin = re.fullmatch(r"={2,3}([\w.+!-]+)", spec)
        place = Place(_shown(path), line, start + 1, line, start + 1 + len(found[0].rstrip()))
        yield name, Value(pin[1] if pin else spec, "written", name, place, spec, file_format="requirements")


def _locked(folder: Path) -> Iterator[tuple[str, Value[str]]]:
    for name in LOCKS:
        path = folder / name
        if not os.path.isfile(path) or os.path.getsize(path) > LIMIT:
            continue
        text = "\n".join(line for _, line in _text(path))
        for found in _LOCKED.finditer(text):
            package = found["name"].lower().replace("_", "-")
            if package in PACKAGES:
                line = text.count("\n", 0, found.start()) + 2
                place = Place(_shown(path), line, 1, line, len(found["version"]) + 13)
                yield package, Value(found["version"], "written", package, place, found["version"], file_format="lock")


def _text(path: Path) -> list[tuple[int, str]]:
    try:
        return list(enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1))
    except OSError:
        return []


def _shown(path: Path) -> str:
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)
