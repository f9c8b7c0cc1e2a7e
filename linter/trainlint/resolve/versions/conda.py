"""Conda environments: packages with conda's `=`, and the requirements of the `pip` section."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from trainlint.documents import Mapping, Place, Scalar, Sequence, from_text
from trainlint.resolve.versions.requirement import PACKAGES, Said, package, read, requirement, requirement_file, shown
from trainlint.resolve.versions.requirement import version as said_version

FORMAT = "conda"
NAMES = {"pytorch": "torch", "pytorch-gpu": "torch", "pytorch-lightning": "pytorch-lightning"}
"""Packages that are named otherwise on conda's channels."""


def environment(path: Path) -> Iterator[Said]:
    """What an `environment.yml` asks for."""
    text = read(path)
    if "dependencies:" not in text:
        return
    roots = from_text(shown(path), text, "yaml").roots
    listed = roots[0].get("dependencies") if roots and isinstance(roots[0], Mapping) else None
    for item in listed.items if isinstance(listed, Sequence) else ():
        if isinstance(item, Scalar) and isinstance(item.value, str):
            yield from _conda(item.place, item.value)
        elif isinstance(item, Mapping) and isinstance(pip := item.get("pip"), Sequence):
            for below in pip.items:
                if isinstance(below, Scalar) and isinstance(below.value, str):
                    yield from _pip(path, below.place, below.value)


def _pip(path: Path, place: Place, text: str) -> Iterator[Said]:
    if text.startswith(("-r ", "--requirement ")):
        yield from requirement_file(path.parent / text.split()[1], 1)
    elif (said := requirement(place, text, FORMAT)) is not None:
        yield said


def _conda(place: Place, text: str) -> Iterator[Said]:
    """`pytorch=2.1` is any 2.1, `pytorch=2.1.0=py3.10_cuda12.1` that build, `pytorch==2.1.0` that release."""
    name, _, rest = text.strip().rpartition("::")[2].partition("=")
    found = re.fullmatch(r"(?P<name>[A-Za-z][\w.-]*)\s*(?P<range>[<>!~]\S*)?\s*", name)
    if found is None:
        return
    known = NAMES.get(package(found["name"]), package(found["name"]))
    if known not in PACKAGES:
        return
    if found["range"]:
        spec = re.sub(r"\s+", "", text.rpartition("::")[2])[len(found["name"]) :]
        yield known, said_version(place, known, spec, FORMAT)
    elif rest:
        exact = rest.startswith("=")
        release, _, build = rest.lstrip("=").partition("=")
        release = release.strip()
        if not re.fullmatch(r"\d[\w.*+!]*", release):
            return
        pinned = (exact or build or release.count(".") >= 2) and "*" not in release
        spec = f"=={release}" if pinned else f"=={release.removesuffix('.*').removesuffix('*')}.*"
        yield known, said_version(place, known, spec, FORMAT)
