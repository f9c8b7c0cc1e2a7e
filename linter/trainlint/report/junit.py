"""JUnit XML as test dashboards read it: a suite a file, a failure for each error and warning.

What is only info passes and is told in `system-out`; a file without findings is one passed test.
"""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from trainlint.report.text import described
from trainlint.result import Result
from trainlint.rule import Finding

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(result: Result) -> str:
    """The XML document."""
    by_file: dict[str, list[Finding]] = {file.file: [] for file in result.files}
    for finding in result.findings:
        by_file.setdefault(finding.place.file, []).append(finding)
    suites = [_suite(file, findings) for file, findings in by_file.items()]
    tests = sum(max(1, len(findings)) for findings in by_file.values())
    failures = sum(_fails(finding) for finding in result.findings)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="trainlint" tests="{tests}" failures="{failures}" errors="0">',
        *suites,
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _suite(file: str, findings: list[Finding]) -> str:
    failures = sum(map(_fails, findings))
    counts = f'tests="{max(1, len(findings))}" failures="{failures}" errors="0" skipped="0"'
    cases = [_case(finding) for finding in findings] or [
        f'    <testcase name="trainlint" classname={_attribute(file)} />'
    ]
    return "\n".join([f"  <testsuite name={_attribute(file)} {counts}>", *cases, "  </testsuite>"])


def _case(finding: Finding) -> str:
    place = finding.place
    name = _attribute(f"{finding.rule}:{place.line}:{place.column}")
    text = escape(_FORBIDDEN.sub("\ufffd", "\n".join(described(finding))))
    file = _attribute(place.file)
    head = f'    <testcase name={name} classname={file} file={file} line="{place.line}">'
    if _fails(finding):
        kind = f"message={_attribute(finding.message)} type={_attribute(finding.severity)}"
        return f"{head}\n      <failure {kind}>{text}</failure>\n    </testcase>"
    return f"{head}\n      <system-out>{text}</system-out>\n    </testcase>"


def _fails(finding: Finding) -> bool:
    return finding.severity != "info"


def _attribute(text: str) -> str:
    return quoteattr(_FORBIDDEN.sub("\ufffd", text))
