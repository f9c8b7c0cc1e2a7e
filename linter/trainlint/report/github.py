"""Workflow commands that GitHub Actions turns into annotations on the changed lines.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

from trainlint.result import Result
from trainlint.rule import Finding

LEVELS = {"error": "error", "warning": "warning", "info": "notice"}


def render(result: Result) -> str:
    """One command a finding."""
    return "".join(f"{_command(finding)}\n" for finding in result.findings)


def _command(finding: Finding) -> str:
    place = finding.place
    properties = {"file": place.file.replace("\\", "/"), "line": str(place.line), "endLine": str(place.end_line)}
    if place.end_line == place.line:  # columns of a stretch over several lines are refused
        properties |= {"col": str(place.column), "endColumn": str(place.end_column)}
    properties["title"] = finding.rule
    text = [finding.message]
    text += [
        f"note: {note.place.file}:{note.place.line}:{note.place.column}: {note.message}" for note in finding.related
    ]
    text += [f"help: {finding.help}"] if finding.help else []
    said = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{LEVELS[finding.severity]} {said}::{_data(chr(10).join(text))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
