"""One requirement as a version, and requirement files with what they include.

An exact pin is a version (`4.41.2`), everything else stays a specifier (`>=4.46,<5`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from trainlint.documents import Place
from trainlint.run import Value

PACKAGES = frozenset(
    (
        "accelerate", "axolotl", "bitsandbytes", "datasets", "deepspeed", "flash-attn", "lightning", "litgpt",
        "liger-kernel", "llamafactory", "llm-foundry", "mlx", "mlx-lm", "ms-swift", "nemo-toolkit", "openrlhf", "oumi",
        "peft", "pytorch-lightning", "torch", "torchao", "torchtitan", "torchtune", "transformers", "trl", "unsloth",
        "verl", "vllm",
    )
)  # fmt: skip
"""Packages whose versions decide what a config means."""
Said = tuple[str, Value[str] | None]
"""A package and its version; None where it is installed in a version that nothing tells, as from a branch."""
LIMIT = 8 << 20
"""Files larger than this are not read (bytes)."""
INCLUDES = 5
"""Requirement files include each other at most so deep."""

_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*"
    r"(?P<spec>\(?(?:(?:===|==|~=|!=|>=|<=|>|<)\s*[\w.*+!-]+\s*(?:,\s*|(?=[;#)\s]|$)))*\)?)"
    r"\s*(?:@\s*(?P<url>\S+))?\s*(?:;(?P<marker>.*))?(?:\s#.*)?$"
)
_OPTION = re.compile(r"(?:-r|--requirement|-c|--constraint)(?:\s+|=)(?P<file>\S+)")
_PER_REQUIREMENT = re.compile(r"\s--(?:hash|config-settings|global-option)[=\s].*$")
_EGG = re.compile(r"#egg=(?P<name>[\w.-]+)")
_REPOSITORY = re.compile(r"github\.com[/:][\w.-]+/(?P<name>[\w.-]+?)(?:\.git)?(?:@|/archive/|/releases/|$)")
_TAG = re.compile(r"@v?(?P<version>\d+(?:\.\d+)+(?:\.?(?:post|rc|a|b|dev)\d+)?)(?:#.*)?$")
_WHEEL = re.compile(r"/(?P<name>[A-Za-z0-9_.]+)-(?P<version>\d[\w.]*(?:(?:\+|%2[Bb])[\w.]+)?)-[^/]*\.whl(?:#.*)?$")
_ATOM = re.compile(
    r"(?P<what>sys_platform|platform_system|os_name|platform_machine)\s*(?P<is>==|!=)\s*['\"](?P<word>\w+)['\"]"
)
_LINUX = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_machine": "x86_64"}


def package(name: str) -> str:
    """A package's name as indexes normalise it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirement(place: Place, text: str, file_format: str = "requirements") -> Said | None:
    """What a requirement asks for; None where it says nothing of a version, or is not for Linux."""
    found = _REQUIREMENT.match(_PER_REQUIREMENT.sub("", text))
    if found is None:
        return _located(place, text, file_format) if "://" in text else None
    name = package(found["name"])
    marker = found["marker"] or ""
    if name not in PACKAGES or "extra" in marker or (not name.startswith("mlx") and _elsewhere(marker)):
        return None
    if found["url"]:
        return name, _at_url(place, name, found["url"], file_format)
    spec = re.sub(r"[\s()]+", "", found["spec"]).strip(",")
    if not spec:
        return None
    end = place.column + len(found[0].rstrip()) if place.line == place.end_line else place.end_column
    return name, version(place._replace(end_column=end), name, spec, file_format)


def version(place: Place, name: str, spec: str, file_format: str) -> Value[str]:
    """A specifier as the value of its package."""
    pin = re.fullmatch(r"={2,3}([\w.+!-]+)", spec)
    return Value(pin[1] if pin else spec, "written", name, place, spec, file_format=file_format)


def _located(place: Place, text: str, file_format: str) -> Said | None:
    """What an address alone installs: a repository, or a wheel whose name says its version."""
    found = _EGG.search(text) or _WHEEL.search(text) or _REPOSITORY.search(text)
    name = package(found["name"]) if found is not None else ""
    return (name, _at_url(place, name, text.strip(), file_format)) if name in PACKAGES else None


def _at_url(place: Place, name: str, url: str, file_format: str) -> Value[str] | None:
    """The version that a tag or a wheel's name says; None for a branch or a commit."""
    found = _TAG.search(url) or _WHEEL.search(url)
    if found is None:
        return None
    said = found["version"].replace("%2B", "+").replace("%2b", "+")
    return Value(said, "written", name, place, url, file_format=file_format)


def _elsewhere(marker: str) -> bool:
    """Whether a marker is for other systems than Linux on x86_64, as far as it says; what `or` joins may hold."""
    if not marker or " or " in marker:
        return False
    return any((atom["word"] == _LINUX[atom["what"]]) != (atom["is"] == "==") for atom in _ATOM.finditer(marker))


def requirement_file(path: Path, depth: int = 0) -> Iterator[Said]:
    """What a requirement file asks for, after what it includes; constraints come last."""
    later: list[Said] = []
    own: list[Said] = []
    for line, column, text in _logical(path):
        option = _OPTION.match(text)
        if option is not None:
            included = path.parent / option["file"].strip("'\"")
            if depth < INCLUDES and "://" not in option["file"]:
                found = requirement_file(included, depth + 1)
                if text.startswith(("-c", "--c")):
                    later += found
                else:
                    yield from found
        elif not text.startswith(("-", "#")) or text.startswith(("-e ", "--editable ")):
            place = Place(shown(path), line, column, line, column + len(text))
            said = requirement(place, re.sub(r"^(?:-e|--editable)\s+", "", text))
            if said is not None:
                own.append(said)
    yield from once(own)
    yield from later


def once(said: Iterable[Said]) -> Iterator[Said]:
    """Each package once; none that is asked for in several versions, between which markers decide."""
    found: dict[str, list[Value[str] | None]] = {}
    for name, value in said:
        found.setdefault(name, []).append(value)
    for name, values in found.items():
        if len({None if value is None else value.value for value in values}) == 1:
            yield name, values[0]


def _logical(path: Path) -> Iterator[tuple[int, int, str]]:
    """The lines of a requirement file with their places, those that end in a backslash joined."""
    joined, begin = "", (1, 1)
    for number, line in lines(path):
        text = line if joined else line.lstrip()
        if not joined:
            begin = (number, len(line) - len(text) + 1)
        if text.rstrip().endswith("\\") and not text.startswith("#"):
            joined += text.rstrip()[:-1] + " "
            continue
        yield *begin, (joined + text).strip()
        joined = ""
    if joined:
        yield *begin, joined.strip()


def lines(path: Path) -> list[tuple[int, str]]:
    """The lines of a text by number; none of what can not be read."""
    return list(enumerate(read(path).split("\n"), 1))


def read(path: Path) -> str:
    """A text with `\\n` at the ends of lines; empty for what can not be read or is too large for a list of packages."""
    try:
        if os.path.getsize(path) > LIMIT:
            return ""
        return path.read_text("utf-8", errors="replace")
    except (OSError, ValueError):
        return ""


def shown(path: Path) -> str:
    """A file as reports name it."""
    try:
        return os.path.normpath(path.relative_to(Path.cwd()))
    except ValueError:
        return os.path.normpath(path)
