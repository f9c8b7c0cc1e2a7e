"""The report as a table for a merge request's description."""

from trainlint.api import Result


def markdown(result: Result) -> str:
    """A row a finding; empty when nothing was found."""
    if not result.findings:
        return ""
    rows = [
        f"| `{finding.place.file}:{finding.place.line}` | {finding.severity} | {finding.message} | `{finding.rule}` |"
        for finding in result.findings
    ]
    return "\n".join(["| where | | what | rule |", "|---|---|---|---|", *rows, ""])
