"""The report for people: one line a finding, the source it stands on, what belongs to it, and what helps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from trainlint.documents import Place
from trainlint.report.color import paint
from trainlint.report.excerpt import excerpt, harmless
from trainlint.result import Result
from trainlint.rule import SEVERITIES, Finding


def render(
    result: Result, *, color: bool = False, statistics: bool = False, verbose: bool = False, quiet: bool = False
) -> str:
    """All findings and a summary; empty when there is nothing to say."""
    sources = {} if quiet or result.sources is None else result.sources
    lines: dict[str, list[str]] = {}
    out: list[str] = []
    for finding in result.findings:
        file = finding.place.file
        if file not in lines:
            lines[file] = sources.get(file, "").split("\n")
        out.extend(described(finding, lines[file], color, brief=quiet))
    if statistics:
        out.extend(_statistics(result, color))
    if verbose:
        out.extend(
            f"{harmless(missed.root)}: not judged: {missed.rule} (unknown: {', '.join(missed.missing)})"
            for missed in result.not_judged
        )
    if (result.findings and not quiet) or verbose:
        out.append(_summary(result, verbose))
    return "".join(f"{line}\n" for line in out)


def described(
    finding: Finding, lines: list[str] | None = None, color: bool = False, brief: bool = False
) -> Iterator[str]:
    """The lines of one finding; `lines` is the text of its file, without it there is no excerpt."""
    where = paint(at(finding.place), "bold", color)
    severity = paint(finding.severity, finding.severity, color)
    yield f"{where}: {severity}: {harmless(finding.message)} {paint(f'[{finding.rule}]', 'dim', color)}"
    if brief:
        return
    shown = excerpt(finding.place, lines) if lines else None
    if finding.code is not None and lines:
        line, column, end = finding.code
        shown = excerpt(Place(finding.place.file, 1, column, 1, end), [line])
    if shown is not None:
        line, marks = shown
        number = f"{finding.place.line:>3}"
        blank = " " * len(number)
        yield f"   {paint(f'| {number} |', 'dim', color)} {line}"
        yield f"   {paint(f'| {blank} |', 'dim', color)} {paint(marks, finding.severity, color)}"
    for note in finding.related:
        yield f"   {paint('note:', 'note', color)} {at(note.place)}: {harmless(note.message)}"
    if finding.help:
        yield f"   {paint('help:', 'help', color)} {harmless(finding.help)}"


def at(place: Place) -> str:
    """A place as `file:line:column`."""
    return f"{harmless(place.file)}:{place.line}:{place.column}"


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _statistics(result: Result, color: bool) -> Iterator[str]:
    counts = Counter((finding.rule, finding.severity) for finding in result.findings)
    for (rule, severity), number in sorted(counts.items(), key=lambda one: (-one[1], one[0])):
        yield f"{number:>5}  {paint(f'{severity:<7}', severity, color)}  {rule}"


def _summary(result: Result, verbose: bool) -> str:
    counts = Counter(finding.severity for finding in result.findings)
    nouns = {"error": "error", "warning": "warning", "info": "note"}
    said = ", ".join(counted(counts[kind], nouns[kind]) for kind in reversed(SEVERITIES) if counts[kind])
    configs = sum(file.format is not None for file in result.files)
    said = f"{said or 'nothing found'} in {counted(len(result.files), 'file')}"
    if verbose:
        said += f" ({counted(configs, 'training config')}, {counted(len(result.runs), 'run')})"
    if result.suppressed:
        said += f", {result.suppressed} silenced by comments"
    safe = sum(finding.fix is not None and finding.fix.safety == "safe" for finding in result.findings)
    unsafe = sum(finding.fix is not None and finding.fix.safety == "unsafe" for finding in result.findings)
    offers = [f"{safe} with `--fix`"] * bool(safe) + [f"{unsafe} with `--unsafe-fixes`"] * bool(unsafe)
    return f"{said}; fixable: {', '.join(offers)}" if offers else said
