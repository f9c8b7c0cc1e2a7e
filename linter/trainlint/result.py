"""What a check comes to: findings, files, runs, and what could not be judged. Reports print this."""

from __future__ import annotations

from dataclasses import dataclass

from trainlint.rule import SEVERITIES, Finding, Severity


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file that was looked at, and the format it was recognised as (None: no training config)."""

    file: str
    format: str | None


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """A run: the file it starts from and all files that belong to it, the root first."""

    root: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotJudged:
    """A rule that concerns a run but lacks a value it needs."""

    rule: str
    root: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """Everything a check found, in a stable order (file, line, column, rule). `sources`: the text of each file."""

    findings: tuple[Finding, ...] = ()
    files: tuple[CheckedFile, ...] = ()
    runs: tuple[CheckedRun, ...] = ()
    not_judged: tuple[NotJudged, ...] = ()
    suppressed: int = 0
    sources: dict[str, str] | None = None

    def at_least(self, severity: Severity) -> tuple[Finding, ...]:
        """The findings of that severity or a graver one."""
        floor = SEVERITIES.index(severity)
        return tuple(finding for finding in self.findings if SEVERITIES.index(finding.severity) >= floor)
