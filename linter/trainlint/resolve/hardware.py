"""What the run runs on: from a comment in the file, the launcher, or the settings, made precise by the device facts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from trainlint.documents import Comment
from trainlint.formats import Draft
from trainlint.resolve.stated import Stated
from trainlint.run import Value

if TYPE_CHECKING:
    from trainlint.facts.devices import Match

_SAID = re.compile(r"(?P<word>device|devices|device-memory|host-memory)\s*=\s*(?P<text>[^,;]+)")
_DEVICE = re.compile(r"(?P<name>[^:]+?)(?:\s*:\s*(?P<count>[1-9]\d*))?")

Facts = dict[str, Value[object]]


def add_hardware(draft: Draft, comments: Iterable[Comment], settings: Stated, asked: Stated) -> None:
    """Fill `device.*`. Order: command line (`asked`), a comment in the file, the launcher, the settings.

    The memory that somebody states with another device's name is not this one's.
    """
    paths = ("device.name", "device.count", "device.memory", "device.host_memory")
    files = {path: draft.values[path] for path in paths if path in draft.values}
    stated: Facts = {}
    for level in (_stated(asked), _commented(comments), files, _stated(settings)):
        if "device.name" in stated and "device.name" in level and level["device.name"] != stated["device.name"]:
            level.pop("device.memory", None)
        stated = {**level, **stated}
    draft.values.pop("device.memory", None)
    draft.values.update(stated)
    claimed = draft.values.pop("device.memory", None)
    name = draft.get("device.name")
    if isinstance(name, str) and name.lower() == "cpu":
        draft.put("device.cpu_only", True, "derived", "`device`")
    match = _match(name) if isinstance(name, str) else None
    if match is not None and match.device.memory is not None:
        _known(draft, match, claimed)
    elif claimed is not None:
        draft.values["device.memory"] = draft.values["device.memory_high"] = claimed
    if claimed is not None:
        draft.values["device.claimed_memory"] = claimed


def _stated(settings: Stated) -> Facts:
    said = (
        ("device.name", settings.device),
        ("device.count", settings.devices),
        ("device.memory", settings.device_memory),
        ("device.host_memory", settings.host_memory),
    )
    return {path: value for path, value in said if value is not None}  # type: ignore[misc]


def _commented(comments: Iterable[Comment]) -> Facts:
    """What comments say: `device=RTX 4090:2`, `devices=2`, `device-memory=24 GiB`; the first of each counts."""
    facts: Facts = {}
    for comment in comments:
        found = _SAID.fullmatch(comment.text.strip())
        if found is None:
            continue
        word, text, place = found["word"], found["text"].strip().strip("\"'"), comment.place
        device = _DEVICE.fullmatch(text)
        if word == "device" and device is not None:
            facts.setdefault("device.name", Value(device["name"], "written", word, place, device["name"]))
            if device["count"]:
                facts.setdefault("device.count", Value(int(device["count"]), "written", word, place, device["count"]))
        elif word == "devices" and text.isdecimal() and int(text):
            facts.setdefault("device.count", Value(int(text), "written", word, place, text))
        elif word in ("device-memory", "host-memory"):
            size = _bytes(text)
            if size:
                path = "device.memory" if word == "device-memory" else "device.host_memory"
                facts.setdefault(path, Value(size, "written", word, place, text, "byte"))
    return facts


def _bytes(text: str) -> int:
    from trainlint.units import UnitError, parse

    try:
        return max(0, int(parse(text, "byte")))
    except UnitError:
        return 0


def _match(name: str) -> Match | None:
    from trainlint.facts import devices  # not needed where no device is named

    return devices.match(name)


def _known(draft: Draft, match: Match, claimed: Value[object] | None) -> None:
    """The device's facts; a stated memory counts where it is no more than the device can have."""
    device = match.device
    assert device.memory is not None
    low, high = device.memory
    note = device.name
    if match.contradicted and match.claimed is not None:
        draft.put(
            "device.claimed_memory", match.claimed, "derived", f"the size in `{draft.get('device.name')}`", "byte"
        )
    stated = claimed.value if claimed is not None else None
    if isinstance(stated, int) and stated <= high:
        assert claimed is not None
        draft.values["device.memory"] = draft.values["device.memory_high"] = claimed
    else:
        draft.derive("device.memory", low, note, "byte")
        draft.derive("device.memory_high", high, note, "byte")
    draft.derive("device.unified", device.unified, note)
    if device.capability is not None:
        draft.derive("device.capability", device.capability[0] + device.capability[1] / 10, note)
