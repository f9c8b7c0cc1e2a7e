"""Versions that a job installs before it trains: `pip install trl==0.9.6` in its setup."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainlint.formats.launch.command_line import Command
from trainlint.run import Value

_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z][\w.-]*)(?:\[[^\]]*\])?(?P<spec>(?:(?:===|==|~=|!=|>=|<=|>|<)[\w.*+!-]+,?)+)"
)
_PIP = frozenset(("pip", "pip3"))


def installed(format_name: str, commands: Sequence[Command]) -> dict[str, Value[object]]:
    """`versions.<package>` of what is installed with a version; the last one counts, an exact pin is the version."""
    found: dict[str, Value[object]] = {}
    for command in commands:
        texts = [word.text or "" for word in command.words]
        if "install" not in texts or not any(
            text.rpartition("/")[2] in _PIP for text in texts[: texts.index("install")]
        ):
            continue
        for word in command.words[texts.index("install") + 1 :]:
            match = _REQUIREMENT.fullmatch(word.text or "")
            if match is None:
                continue
            name = re.sub(r"[-_.]+", "-", match["name"]).lower()
            spec = match["spec"].strip(",")
            pin = re.fullmatch(r"={2,3}([\w.+!-]+)", spec)
            if pin is None or "*" not in pin[1]:
                text = pin[1] if pin else spec
                found[f"versions.{name}"] = Value(text, "written", name, word.place, spec, file_format=format_name)
    return found
