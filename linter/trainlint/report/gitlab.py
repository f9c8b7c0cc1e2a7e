"""GitLab's code quality report: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format."""

from __future__ import annotations

import json

from trainlint.report.fingerprint import fingerprints
from trainlint.result import Result

SEVERITIES = {"error": "major", "warning": "minor", "info": "info"}


def render(result: Result) -> str:
    """A JSON list with an entry a finding."""
    entries = [
        {
            "description": f"{finding.message} (help: {finding.help})" if finding.help else finding.message,
            "check_name": finding.rule,
            "fingerprint": fingerprint,
            "severity": SEVERITIES[finding.severity],
            "location": {
                "path": finding.place.file.replace("\\", "/"),
                "lines": {"begin": finding.place.line, "end": finding.place.end_line},
            },
        }
        for finding, fingerprint in fingerprints(result)
    ]
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"
