"""Comments that silence: `# trainlint: ignore[rule, family, glob-*] reason`, and `ignore-file[…]` for a whole file.

A comment silences what is found on its line, standing alone on the line below it; of a stretch over several lines it
may stand at the first, the last, or the line of its key. Comments that say nothing useful are findings themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from trainlint.documents import Comment, Document, Mapping, Node, Place, nodes
from trainlint.rule import Edit, Finding, Fix, Rule, Severity
from trainlint.rulebook import selected

OWN: dict[str, Severity] = {
    "suppression-malformed": "warning",
    "suppression-unused": "warning",
    "suppression-without-reason": "info",
}
"""What these comments themselves can be found to be; only settings silence it."""
SETTINGS = ("device", "devices", "device-memory", "host-memory", "profile")
"""Directives of the form `name=value`, read where runs are put together."""

_IGNORE = re.compile(r"(?P<name>ignore-file|ignore)(?P<list>\s*\[(?P<names>[^\]]*)\])?(?P<rest>.*)")
_HOW = "write `# trainlint: ignore[rule-name] reason`"


@dataclass(slots=True)
class _Suppression:
    """One comment that silences: `line` is the line it is about (0: the file), `used` what it was good for."""

    comment: Comment
    line: int
    selectors: tuple[str, ...]
    used: set[str] = field(default_factory=set)


def apply(
    findings: Iterable[Finding],
    documents: Iterable[Document],
    rules: Iterable[Rule],
    judged: Callable[[str, str], bool] | None = None,
    enabled: bool = True,
) -> tuple[list[Finding], int, list[Finding]]:
    """The findings that are kept, how many were silenced, and what is wrong with the comments themselves.

    `judged(rule, file)` says whether a rule was asked about all of a file: a comment for one that was not may still be
    needed (default: all were). Without `enabled` the comments are as if not written.
    """
    kept = list(findings)
    if not enabled:
        return kept, 0, []
    spoken = [document for document in documents if document.comments]
    if not spoken:
        return kept, 0, []
    known = {rule.name: rule.family for rule in rules}
    own: list[Finding] = []
    silenced: set[int] = set()
    for document in spoken:
        suppressions = list(_suppressions(document, known, own))
        if not suppressions:
            continue
        keys: dict[tuple[int, int], int] = {}
        for root in document.roots:
            keys.update(_key_lines(root))
        for at, finding in enumerate(kept):
            if finding.place.file != document.file:
                continue
            lines = _lines(finding.place, document, keys)
            family = known.get(finding.rule, finding.rule.partition("-")[0])
            for suppression in suppressions:
                if suppression.line and suppression.line not in lines:
                    continue
                hit = {one for one in suppression.selectors if selected(finding.rule, family, (one,))}
                suppression.used |= hit
                if hit:
                    silenced.add(at)
        for suppression in suppressions:
            own.extend(_unused(suppression, document, known, judged))
    return [finding for at, finding in enumerate(kept) if at not in silenced], len(silenced), own


def _suppressions(document: Document, known: dict[str, str], own: list[Finding]) -> Iterator[_Suppression]:
    """The comments that silence something; what is wrong with any comment goes to `own`."""

    def say(rule: str, comment: Comment, message: str, help: str) -> None:
        own.append(Finding(rule, OWN[rule], message, comment.place, help))

    for comment in document.comments:
        found = _IGNORE.fullmatch(comment.text)
        if found is None or (found["list"] is None and found["rest"][:1] not in ("", " ", "\t", ":")):
            name, equals, _ = comment.text.partition("=")
            if not equals or name.strip() not in SETTINGS:
                word = re.match(r"[^\s=\[]*", name)
                message = f"trainlint has no directive `{word[0] if word else name}`"
                say("suppression-malformed", comment, message, "there are `ignore[…]`, `ignore-file[…]`, `device=…`")
            continue
        whole, names = found["name"] == "ignore-file", re.split(r"[\s,]+", (found["names"] or "").strip())
        if names == [""]:
            say("suppression-malformed", comment, f"`{found['name']}` names no rule in brackets", _HOW)
            continue
        if whole and not comment.alone:
            message = "`ignore-file` stands behind other text"
            say("suppression-malformed", comment, message, "put it on a line of its own, or write `ignore[…]`")
            continue
        good = []
        for name in dict.fromkeys(names):
            if name in OWN or name == "suppression":
                say("suppression-malformed", comment, f"no comment silences `{name}`", "use `ignore` in the settings")
            elif any(selected(rule, family, (name,)) for rule, family in known.items()):
                good.append(name)
            else:
                say("suppression-malformed", comment, f"no rule or family is named `{name}`", _close(name, known))
        if good:
            if not found["rest"].strip(" \t:,;.-\N{EN DASH}\N{EM DASH}"):
                message = f"nothing says why `{', '.join(good)}` is silenced"
                say("suppression-without-reason", comment, message, "write the reason behind the bracket")
            line = 0 if whole else _target(comment, document)
            yield _Suppression(comment, line, tuple(good))


def _target(comment: Comment, document: Document) -> int:
    """The line a comment is about: its own, or standing alone the next one that is no comment."""
    line = comment.place.line
    if not comment.alone:
        return line
    line += 1
    while document.line(line).lstrip().startswith("#"):
        line += 1
    return line


def _lines(place: Place, document: Document, keys: dict[tuple[int, int], int]) -> set[int]:
    """The lines at which a comment about a place may stand."""
    last = place.end_line - 1 if place.end_column == 1 and place.end_line > place.line else place.end_line
    first = place.line
    if document.syntax == "shell":  # no comment may stand inside of a command over several lines
        while document.line(first - 1).endswith("\\"):
            first -= 1
        while document.line(last).endswith("\\"):
            last += 1
    return {first, last, keys.get((place.line, place.column), first)}


def _key_lines(root: Node) -> dict[tuple[int, int], int]:
    """For values that start on another line than their key: where they start → the key's line."""
    found: dict[tuple[int, int], int] = {}
    for node in nodes(root):
        for entry in node.entries if isinstance(node, Mapping) else ():
            place = entry.value.place
            if place.line > entry.key.place.line:
                found[place.line, place.column] = entry.key.place.line
    return found


def _unused(
    suppression: _Suppression, document: Document, known: dict[str, str], judged: Callable[[str, str], bool] | None
) -> Iterator[Finding]:
    """A finding for the selectors of a comment that silence nothing, if all their rules were asked."""

    def asked(selector: str) -> bool:
        names = [rule for rule, family in known.items() if selected(rule, family, (selector,))]
        return judged is None or all(judged(name, document.file) for name in names)

    idle = [one for one in suppression.selectors if one not in suppression.used and asked(one)]
    if idle:
        left = [one for one in suppression.selectors if one not in idle]
        message = f"nothing here is silenced by `{', '.join(idle)}`"
        fix = _without(suppression.comment, document, left)
        help = "take it out of the brackets" if left else "remove the comment"
        yield Finding("suppression-unused", "warning", message, suppression.comment.place, help, fix=fix)


def _without(comment: Comment, document: Document, left: list[str]) -> Fix:
    """The fix that leaves only some selectors, or nothing, of a comment."""
    place = comment.place
    line = document.line(place.line)
    if left:
        begin = line.index("[", place.column - 1) + 1
        inside = Place(place.file, place.line, begin + 1, place.line, line.index("]", begin) + 1)
        return Fix((Edit(inside, ", ".join(left)),), "safe", "take the idle names out of the comment")
    if comment.alone:
        gone = Place(place.file, place.line, 1, place.line + 1, 1)
    else:
        before = len(line[: place.column - 1].rstrip())
        gone = Place(place.file, place.line, before + 1, place.line, max(place.end_column, len(line) + 1))
    return Fix((Edit(gone, ""),), "safe", "remove the comment")


def _close(name: str, known: dict[str, str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, [*known, *sorted(set(known.values()))], 1)
    return f"write `{close[0]}`" if close else "`trainlint rules` lists them"
