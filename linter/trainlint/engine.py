"""The pipeline, in the order of the design: documents, formats, runs, memory, rules, report."""

from __future__ import annotations

import os
from pathlib import Path

from trainlint import suppress
from trainlint.judging import Judge, once
from trainlint.result import CheckedFile, CheckedRun, NotJudged, Result
from trainlint.rule import Finding
from trainlint.session import Request, Session, open_session
from trainlint.settings import Settings, nearest


def check(request: Request) -> tuple[Result, Session]:
    """Lint everything a request names."""
    session = open_session(request)
    findings: list[Finding] = []
    not_judged: list[NotJudged] = []
    judged = Judge(session)
    findings += judged.texts()
    findings += judged.files()
    findings += judged.runs(not_judged)
    findings = once(findings, {rule.name: rule for rule in session.toolbox.rules})
    findings, suppressed, own = suppress.apply(
        findings,
        session.documents.values(),
        session.toolbox.rules,
        judged.judged(not_judged),
        enabled=request.suppressions,
    )
    findings += [finding for finding in own if judged.selected(finding.rule, finding.place)]
    findings = [judged.levelled(finding) for finding in findings]
    findings.sort(key=lambda finding: (*finding.place[:3], finding.rule, finding.message))
    notebooks = {name: one.notebook for name, one in session.documents.items() if one.notebook is not None}
    if notebooks:
        from trainlint.cells import located

        findings = [located(finding, notebooks) for finding in findings]
    formats: dict[str, str | None] = dict.fromkeys(session.documents)
    for fragment in session.fragments:
        formats[fragment.file] = formats.get(fragment.file) or fragment.format
    result = Result(
        findings=tuple(findings),
        files=tuple(CheckedFile(file, formats[file]) for file in sorted(formats)),
        runs=tuple(CheckedRun(resolved.run.root, resolved.run.files) for resolved in session.runs),
        not_judged=tuple(dict.fromkeys(not_judged)),
        suppressed=suppressed,
        sources={
            name: document.notebook.text if document.notebook is not None else document.text
            for name, document in session.documents.items()
        },
    )
    return result, session


def check_folder(path: Path, select: tuple[str, ...] = ()) -> Result:
    """Lint one folder as if one stood in it: its own `trainlint.toml`, names relative to it. For pages and tests."""
    asked = Settings(select=select, given=frozenset(("select",))) if select else Settings()
    before = Path.cwd()
    os.chdir(path)
    try:
        nearest.cache_clear()
        return check(Request(paths=(".",), asked=asked))[0]
    finally:
        os.chdir(before)
