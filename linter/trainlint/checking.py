"""The commands that look at files: `check`, `estimate` and `show`, from parsed options to text and exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from trainlint.engine import check
from trainlint.errors import TrainlintError
from trainlint.judging import memory_of
from trainlint.result import Result
from trainlint.rule import Finding, RunView
from trainlint.session import Request, Session, open_session
from trainlint.settings import Settings

if TYPE_CHECKING:
    from trainlint.report.estimate import Estimated
    from trainlint.resolve import Resolved

ROUNDS = 10
"""Fixes are applied and the files linted again at most so often."""


def _request(options: argparse.Namespace, given: Mapping[str, object]) -> Request:
    asked = Settings(**cast(dict[str, object], dict(given)), given=frozenset(given))  # type: ignore[arg-type]
    if options.config is not None and not os.path.isfile(options.config):
        raise TrainlintError(f"no settings file {options.config}")
    stdin = None
    name = getattr(options, "stdin_filename", None)
    if name or options.paths == ["-"]:
        stdin = (name or "stdin.yaml", sys.stdin.buffer.read())
    return Request(
        paths=(stdin[0],) if stdin else tuple(options.paths),
        asked=asked,
        config=options.config,
        suppressions=not getattr(options, "no_suppressions", False),
        stdin=stdin,
        force_exclude=getattr(options, "force_exclude", False),
    )


def run_check(options: argparse.Namespace, given: Mapping[str, object]) -> int:
    """Lint, fix where asked to, report; returns the exit code."""
    from trainlint import plugins, report
    from trainlint.report import color

    request = _request(options, given)
    result, session = check(request)
    further = dict(plugins.offered(session.toolbox.manager, "trainlint_reports"))
    if options.output_format not in (*report.FORMATS, *further):
        raise report.unknown(options.output_format, further)
    out = sys.stdout
    if options.fix or options.diff:
        result = _fixed(options, request, result)
        if options.diff:
            return 0 if options.exit_zero or not _failing(result, session) else 1
        out = sys.stderr if request.stdin is not None else sys.stdout
    colored = options.output_file is None and color.wanted(out, os.environ)
    text = report.render(
        options.output_format,
        result,
        session.toolbox.rules,
        color=colored,
        statistics=options.statistics,
        verbose=options.verbose,
        quiet=options.quiet,
        further=further,
    )
    if options.output_file is not None:
        try:
            options.output_file.write_text(text, "utf-8")
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise TrainlintError(f"can not write `{options.output_file}`: {reason}") from None
    else:
        out.write(text)
    return 1 if _failing(result, session) and not options.exit_zero else 0


def _failing(result: Result, session: Session) -> list[Finding]:
    """The findings at or above the level that fails, which the settings of each file say, or a comment in it."""
    levels = ("info", "warning", "error")
    runs = [resolved.run for resolved in session.runs]
    profiles = {file: run.profile.value for run in runs if run.profile is not None for file in run.files}
    profiles |= {run.root: run.profile.value for run in runs if run.profile is not None}
    failing = []
    for finding in result.findings:
        settings = session.settings_at(Path(finding.place.file))
        strict = profiles.get(finding.place.file, settings.profile) == "strict"
        floor = "info" if strict and "fail_on" not in settings.given else settings.fail_on
        if levels.index(finding.severity) >= levels.index(floor):
            failing.append(finding)
    return failing


def _fixed(options: argparse.Namespace, request: Request, result: Result) -> Result:
    """Apply fixes until nothing changes; on `--diff` only show what they would change. Of standard input the fixed
    text goes to standard output, the report to standard error.
    """
    from trainlint import fix

    if request.stdin is not None:
        return _fixed_input(options, request, result)
    before = _sources(result)
    if options.diff:
        fixed = fix.apply(before, result.findings, options.unsafe_fixes)
        for file, text in fixed.texts.items():
            sys.stdout.write(fix.diff(file, before[file], text))
        return result
    for _ in range(ROUNDS):
        fixed = fix.apply(before, result.findings, options.unsafe_fixes)
        if not fixed.texts:
            break
        for file, text in fixed.texts.items():
            fix.write(file, text)
        result, _ = check(request)
        before = _sources(result)
    return result


def _sources(result: Result) -> dict[str, str]:
    """The text of every file that a fix would change."""
    from trainlint import fix

    edited = {edit.place.file for finding in result.findings if finding.fix is not None for edit in finding.fix.edits}
    return {file: fix.read(file) for file in sorted(edited)}


def _fixed_input(options: argparse.Namespace, request: Request, result: Result) -> Result:
    from trainlint import fix

    assert request.stdin is not None
    name, data = request.stdin
    before = text = data.decode("utf-8", "surrogateescape")
    for _ in range(1 if options.diff else ROUNDS):
        fixed = fix.apply({name: text}, result.findings, options.unsafe_fixes).texts
        if name not in fixed:
            break
        text = fixed[name]
        if not options.diff:
            request = replace(request, stdin=(name, text.encode("utf-8", "surrogateescape")))
            result, _ = check(request)
    sys.stdout.flush()
    sys.stdout.buffer.write((fix.diff(name, before, text) if options.diff else text).encode("utf-8", "surrogateescape"))
    return result


def run_estimate(options: argparse.Namespace, given: Mapping[str, object]) -> int:
    """Print the memory of every run, and what was asked beside it; returns 1 where one exceeds its device."""
    from trainlint.report import color, comparison, estimate

    session = open_session(_request(options, given))
    estimated = [
        one for resolved in session.runs if resolved.fragments[0].launches for one in _columns(options, resolved)
    ]
    if options.output_format == "json":
        sys.stdout.write(estimate.json_text(estimated))
    elif options.compare or options.variant:
        sys.stdout.write(comparison.text(estimated, color.wanted(sys.stdout, os.environ)))
    else:
        colored, blocks = color.wanted(sys.stdout, os.environ), color.encodes(sys.stdout, "█")
        sys.stdout.write(estimate.text(estimated, colored, blocks))
    return 1 if any(one.memory is not None and one.memory.verdict == "exceeds" for one in estimated) else 0


def _columns(options: argparse.Namespace, resolved: Resolved) -> Iterator[Estimated]:
    """A run as it is and with the values that were asked for; with those alone where nothing is compared."""
    compared = options.compare or options.variant
    asked = [options.set] if options.set else []
    if options.variant:
        from trainlint.resolve.variant import assignments

        asked += [assignments(text) for text in options.variant]
    for said in ([[]] if compared or not asked else []) + asked:
        yield _estimated(resolved, said, options.fit)


def _estimated(resolved: Resolved, said: Sequence[str], fit: bool) -> Estimated:
    from trainlint.report.estimate import Estimated

    run, variant = resolved.run, dict[str, object]()
    if said:
        from trainlint.memory.forecast import changed
        from trainlint.resolve.variant import completed, values_of

        variant = values_of(said)
        run = changed(run, completed(run, variant))
    view = RunView(run, resolved.fragments, memory_of(run))
    memory, found = view.memory, None
    if fit and memory is not None:
        from trainlint.advice import budget, fits
        from trainlint.memory.fit import Fit

        held = budget(view)
        lacking = held is not None and memory.verdict != "fits"
        found = fits(view, held, thorough=True) if held is not None and lacking else Fit()
    return Estimated(view, memory, found, variant)


def run_show(options: argparse.Namespace, given: Mapping[str, object]) -> int:
    """Print every run as it was resolved."""
    from trainlint.report import color, show

    session = open_session(_request(options, given))
    wanted = show.asked_for([word for words in options.only for word in words.split(",") if word])
    if options.output_format == "json":
        said = show.json_text(session.runs, wanted)
    else:
        said = show.text(session.runs, color.wanted(sys.stdout, os.environ), wanted)
    sys.stdout.write(said)
    return 0
