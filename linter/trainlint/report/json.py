"""The report for programs, in the form of `report.schema.json`."""

from __future__ import annotations

import json
from functools import cache

from trainlint.documents import Place
from trainlint.result import Result
from trainlint.rule import Finding, Fix

VERSION = 1
"""Of the form; it grows when a key changes its meaning or goes."""


def render(result: Result) -> str:
    """The result as one JSON object, an entry a line: the encoder in C writes no other layout, and is far quicker."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    known = cache(encode)  # what was not judged names the same rules, files and paths thousands of times
    lists = {
        "findings": [encode(_finding(finding)) for finding in result.findings],
        "files": [encode({"file": file.file, "format": file.format}) for file in result.files],
        "runs": [encode({"root": run.root, "files": list(run.files)}) for run in result.runs],
        "not_judged": [
            f'{{"rule": {known(missed.rule)}, "root": {known(missed.root)}, "missing": {known(missed.missing)}}}'
            for missed in result.not_judged
        ],
    }
    parts = [f' "version": {VERSION}']
    for key, entries in lists.items():
        inner = "\n  " + ",\n  ".join(entries) + "\n " if entries else ""
        parts.append(f' "{key}": [{inner}]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _finding(finding: Finding) -> dict[str, object]:
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "message": finding.message,
        "help": finding.help,
        "location": _place(finding.place),
        "related": [
            {
                "file": note.place.file,
                "line": note.place.line,
                "column": note.place.column,
                "message": note.message,
            }
            for note in finding.related
        ],
        "fix": _fix(finding.fix),
    }


def _fix(fix: Fix | None) -> dict[str, object] | None:
    if fix is None:
        return None
    return {"safety": fix.safety, "edits": [{**_place(edit.place), "text": edit.text} for edit in fix.edits]}


def _place(place: Place) -> dict[str, object]:
    return {
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "end_line": place.end_line,
        "end_column": place.end_column,
    }
