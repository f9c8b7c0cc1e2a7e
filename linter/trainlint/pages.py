"""A rule's page: its prose, and examples that are its tests.

Fenced blocks with `file=` are the files of an example; the `report` block behind them holds what the page's own rule
says of them, as the text report prints it without excerpts, and is empty (or `report silent`) where it says nothing;
`fixed file=…` blocks hold what the rule's fixes, unsafe ones too, make of a file. Authors of plugins test theirs with
`problems`, and let `rewritten` fill in what is said.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from trainlint import fix
from trainlint.documents import Place
from trainlint.report.text import described
from trainlint.result import Result
from trainlint.rule import Finding, Rule, RuleError

Check = Callable[[Path], Result]
"""Lints a folder as if one stood in it: places are relative to it, settings its own."""

ROUNDS = 10
"""Most times that fixes are applied to an example: overlapping ones take turns."""
_FENCE = re.compile(r"(?P<fence>`{3,})(?P<info>[^`]*)")


class PageError(RuleError):
    """A page that can not be read, and where."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: the info behind its fence, and the lines of the page it spans, fences included (from 0)."""

    info: str
    text: str
    begin: int
    end: int
    fence: str

    @property
    def kind(self) -> str:
        """*report*, *fixed*, *file* for a file of an example, or *prose*."""
        word = self.info.split(" ")[0]
        if word in ("report", "fixed"):
            return word
        return "file" if self.file else "prose"

    @property
    def file(self) -> str:
        """The file it holds, if any."""
        found = re.search(r"(?:^|\s)file=(\S+)", self.info)
        return found[1] if found else ""


@dataclass(frozen=True, slots=True)
class Example:
    """Files, and what is expected of them; `report` is None while the page does not say."""

    files: tuple[Block, ...]
    report: Block | None = None
    fixed: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the page's rule says of an example, and the files that its fixes change."""

    report: str
    fixed: Mapping[str, str]


def blocks(page: str, file: str = "") -> tuple[Block, ...]:
    """The fenced blocks of a page; raises PageError for one that does not end."""
    found: list[Block] = []
    fence = info = ""
    begin = 0
    lines = page.split("\n")
    for at, line in enumerate(lines):
        if not fence:
            opens = _FENCE.fullmatch(line)
            if opens:
                fence, info, begin = opens["fence"], opens["info"].strip(), at
        elif line.rstrip() == fence:
            text = "".join(f"{one}\n" for one in lines[begin + 1 : at])
            found.append(Block(info, text, begin, at + 1, fence))
            fence = ""
    if fence:
        raise PageError("a fenced block that does not end", Place(file, begin + 1, 1, begin + 1, 4))
    return tuple(found)


def examples(page: str, file: str = "") -> tuple[Example, ...]:
    """The examples of a page in order; raises PageError for a block that belongs to none."""
    found: list[Example] = []
    files: list[Block] = []
    for block in blocks(page, file):
        place = Place(file, block.begin + 1, 1, block.begin + 1, len(block.info) + 4)
        match block.kind:
            case "file":
                path = PurePosixPath(block.file)
                if path.is_absolute() or ".." in path.parts:
                    raise PageError(f"`{block.file}` lies outside of the example", place)
                if any(block.file == other.file for other in files):  # the next example, this one has no report
                    found.append(Example(tuple(files)))
                    files = []
                files.append(block)
            case "report":
                if not files:
                    raise PageError("a report without files before it", place)
                found.append(Example(tuple(files), block))
                files = []
            case "fixed":
                last = found[-1] if found and not files else None
                if last is None or block.file not in [one.file for one in last.files]:
                    raise PageError(f"no file `{block.file}` in the example that this fixes", place)
                found[-1] = Example(last.files, last.report, (*last.fixed, block))
    if files:
        found.append(Example(tuple(files)))
    return tuple(found)


def run_example(example: Example, rule: str, check: Check) -> Outcome:
    """Lint the files of an example in a folder of their own; only findings of the page's rule count."""
    before = {block.file: block.text for block in example.files}
    with tempfile.TemporaryDirectory(prefix="trainlint-page-") as name:
        folder = Path(name).resolve()

        def found(texts: Mapping[str, str]) -> list[Finding]:
            for file, text in texts.items():
                path = folder / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text.encode())
            return [finding for finding in check(folder).findings if finding.rule == rule]

        texts = dict(before)
        first = findings = found(texts)
        for _ in range(ROUNDS):
            changed = fix.apply(texts, findings, unsafe=True).texts
            if not changed:
                break
            texts |= changed
            findings = found(texts)
    said = "".join(f"{line}\n" for finding in first for line in described(finding))
    return Outcome(said, {file: text for file, text in texts.items() if text != before[file]})


def rewritten(page: str, rule: str, check: Check, file: str = "") -> str:
    """The page with its `report` and `fixed` blocks as they are now; missing ones are added."""
    lines = page.split("\n")
    shows = _shows_fix(page, file)
    changes: list[tuple[int, int, list[str]]] = []
    for example in examples(page, file):
        outcome = run_example(example, rule, check)
        report = _fenced("report" if outcome.report else "report silent", outcome.report)
        last = example.files[-1].end
        if example.report is None:
            changes.append((last, last, ["", *report]))
        else:
            last = example.report.end
            if example.report.text != outcome.report:
                changes.append((example.report.begin, last, report))
        for block in example.fixed:
            last = block.end
            text = outcome.fixed.get(block.file)
            if text is None:  # no fix changes the file any more: the block goes, with the blank line before it
                blank = block.begin - 1 if not lines[block.begin - 1] else block.begin
                changes.append((blank, block.end, []))
            elif text != block.text:
                changes.append((block.begin, block.end, _fenced(block.info, text)))
        if outcome.fixed and not shows:
            for name, text in outcome.fixed.items():
                changes.append((last, last, ["", *_fenced(f"fixed file={name}", text)]))
            shows = True
    for begin, end, new in reversed(changes):
        lines[begin:end] = new
    return "\n".join(lines).rstrip("\n") + "\n" if changes else page


def problems(page: str, rule: str, check: Check, file: str = "") -> list[str]:
    """What is wrong with a rule's page, each with its line; nothing if the page is as a page must be."""
    said: list[str] = []
    if not page.startswith(f"# {rule}\n"):
        said.append(f"{file}:1: the page starts with `# {rule}`")
    fires = silent = offers = False
    found = examples(page, file)
    for example in found:
        outcome = run_example(example, rule, check)
        fires, silent = fires or bool(outcome.report), silent or not outcome.report
        offers = offers or bool(outcome.fixed)
        if example.report is None:
            said.append(f"{file}:{example.files[-1].end}: no `report` block behind the files; what is said:")
            said.append(outcome.report)
        else:
            said += _differs(file, example.report, outcome.report)
        for block in example.fixed:
            said += _differs(file, block, outcome.fixed.get(block.file, "no fix changes this file\n"))
    if not fires:
        said.append(f"{file}: no example that the rule speaks of")
    if not silent:
        said.append(f"{file}: no example that the rule is silent about")
    if offers and not _shows_fix(page, file):
        said.append(f"{file}: the rule has a fix, but no `fixed` block shows it")
    return said


def page_of(rule: Rule) -> Path:
    """Where a rule's page lies: beside the rule."""
    return Path(rule.source).with_name(f"{rule.name}.md")


def verify(rule: Rule, check: Check, update: bool = False) -> list[str]:
    """What is wrong with a rule's page, rewriting its blocks first on demand: the whole of a test of pages."""
    path = page_of(rule)
    if not path.is_file():
        return [f"{path}: the rule `{rule.name}` has no page"]
    page = path.read_text("utf-8")
    if update:
        new = rewritten(page, rule.name, check, str(path))
        if new != page:
            path.write_text(new, "utf-8")
            page = new
    return problems(page, rule.name, check, str(path))


def _shows_fix(page: str, file: str) -> bool:
    return any(example.fixed for example in examples(page, file))


def _differs(file: str, block: Block, actual: str) -> Iterable[str]:
    if block.text == actual:
        return
    yield f"{file}:{block.begin + 1}: `{block.info}` is not what is said:"
    yield fix.diff("page", block.text, actual)


def _fenced(info: str, text: str) -> list[str]:
    longest = max((len(found) for found in re.findall(r"^`{3,}", text, re.MULTILINE)), default=2)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{info}", *text.splitlines(), fence]
