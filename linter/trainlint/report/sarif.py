"""SARIF 2.1.0, as code scanning takes it: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from urllib.parse import quote

from trainlint.documents import Place
from trainlint.report.fingerprint import fingerprints
from trainlint.result import Result
from trainlint.rule import Finding, Fix, Rule

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_PARAGRAPH = re.compile(r"^(?!#|```)\S.*(?:\n\S.*)*", re.MULTILINE)


def render(result: Result, rules: Iterable[Rule] = ()) -> str:
    """One run of the tool; it describes the rules that found something."""
    found = sorted({finding.rule for finding in result.findings})
    known = {rule.name: rule for rule in rules if rule.name in found}
    index = {name: at for at, name in enumerate(found)}
    run = {
        "tool": {
            "driver": {
                "name": "trainlint",
                "semanticVersion": _version(),
                "rules": [_rule(name, known.get(name)) for name in found],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True}],
        "results": [_result(finding, index[finding.rule], mark) for finding, mark in fingerprints(result)],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _version() -> str:
    try:
        return version("trainlint")
    except PackageNotFoundError:
        return "0.0.0"


def _rule(name: str, rule: Rule | None) -> dict[str, object]:
    family = rule.family if rule else name.partition("-")[0]
    described: dict[str, object] = {"id": name, "properties": {"tags": ["machine-learning", family]}}
    if rule is None:
        return described
    described["defaultConfiguration"] = {"level": LEVELS[rule.severity]}
    page = rule.page().strip()
    if page:
        first = _PARAGRAPH.search(page)
        short = " ".join(first.group().split()) if first else name
        described |= {"shortDescription": {"text": short}, "help": {"text": page, "markdown": page}}
    return described


def _result(finding: Finding, index: int, fingerprint: str) -> dict[str, object]:
    text = f"{finding.message}\nhelp: {finding.help}" if finding.help else finding.message
    made: dict[str, object] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [_location(finding.place)],
        "partialFingerprints": {"trainlint/v1": fingerprint},
    }
    if finding.related:
        made["relatedLocations"] = [
            {"id": at, **_location(note.place), "message": {"text": note.message}}
            for at, note in enumerate(finding.related)
        ]
    if finding.fix is not None:
        made["fixes"] = [_fix(finding.fix, finding.help)]
    return made


def _fix(fix: Fix, otherwise: str) -> dict[str, object]:
    files = dict.fromkeys(edit.place.file for edit in fix.edits)
    title = fix.title or otherwise or "change the text"
    return {
        "description": {"text": f"{title} ({fix.safety} fix)"},
        "artifactChanges": [
            {
                "artifactLocation": {"uri": _uri(file)},
                "replacements": [
                    {"deletedRegion": _region(edit.place), "insertedContent": {"text": edit.text}}
                    for edit in fix.edits
                    if edit.place.file == file
                ],
            }
            for file in files
        ],
    }


def _location(place: Place) -> dict[str, object]:
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(place.file)}, "region": _region(place)}}


def _region(place: Place) -> dict[str, object]:
    return {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    }


def _uri(file: str) -> str:
    path = file.replace("\\", "/")
    if re.match(r"[A-Za-z]:/", path):
        return "file:///" + quote(path, safe="/:", errors="surrogateescape")
    return ("file://" if path.startswith("/") else "") + quote(path, errors="surrogateescape")
