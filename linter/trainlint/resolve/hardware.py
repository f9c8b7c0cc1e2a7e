"""What the run runs on: from a comment in the file, the launcher, or the settings, made precise by the device facts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from trainlint.documents import Comment
from trainlint.facts import devices
from trainlint.formats import Draft
from trainlint.resolve.stated import Stated
from trainlint.run import Value

_DEVICE = re.compile(r"device\s*=\s*(?P<name>[^:,;]+?)(?:\s*:\s*(?P<count>\d+))?\s*$")


def add_hardware(draft: Draft, comments: Iterable[Comment], settings: Stated, asked: Stated) -> None:
    """Fill `device.*`. Order: command line (`asked`), a comment in the file, the launcher, the settings."""
    stated: dict[str, Value[object]] = {}
    _state(stated, asked)
    for comment in comments:
        found = _DEVICE.match(comment.text)
        if found:
            place = comment.place
            stated.setdefault("device.name", Value(found["name"], "written", "device", place, found["name"]))
            if found["count"]:
                stated.setdefault(
                    "device.count", Value(int(found["count"]), "written", "device", place, found["count"])
                )
    for path in ("device.name", "device.count", "device.host_memory"):
        if path in draft.values and path not in stated:
            stated[path] = draft.values[path]
    _state(stated, settings)
    draft.values.update(stated)
    claimed = draft.values.pop("device.memory", None)
    name = draft.get("device.name")
    if isinstance(name, str) and name.lower() == "cpu":
        draft.put("device.cpu_only", True, "derived", "`device`")
    match = devices.match(name) if isinstance(name, str) else None
    if match is not None and match.device.memory is not None:
        _known(draft, match, claimed)
    elif claimed is not None:
        draft.values["device.memory"] = draft.values["device.memory_high"] = claimed
    if claimed is not None:
        draft.values["device.claimed_memory"] = claimed


def _state(stated: dict[str, Value[object]], settings: Stated) -> None:
    for path, value in (
        ("device.name", settings.device),
        ("device.count", settings.devices),
        ("device.memory", settings.device_memory),
        ("device.host_memory", settings.host_memory),
    ):
        if value is not None:
            stated.setdefault(path, value)  # type: ignore[arg-type]


def _known(draft: Draft, match: devices.Match, claimed: Value[object] | None) -> None:
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
