"""The pipeline, in the order of the design: documents, formats, runs, memory, rules, report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint import plugins, suppress
from trainlint.discover import Discovery, discover
from trainlint.documents import Document, Place, from_bytes, read, syntax_of
from trainlint.errors import TrainlintError
from trainlint.formats import Format, Fragment
from trainlint.formats.registry import built_in, recognise
from trainlint.resolve import Resolved, resolve
from trainlint.resolve.versions import versions_at
from trainlint.result import CheckedFile, CheckedRun, NotJudged, Result
from trainlint.rule import COMMANDS, FileView, Finding, Found, Note, Rule, RuleError, RunView, Severity, place_of
from trainlint.rulebook import collect, enabled, loose, unknown
from trainlint.run import TrainingRun
from trainlint.settings import Settings, nearest
from trainlint.settings import load as load_settings

if TYPE_CHECKING:
    from trainlint.memory.assessment import Assessment

HINTS = ("per_device_train_batch_size", "learning_rate", "zero_optimization", "distributed_type", "base_model")
"""Words that make a broken text look like a training config."""


@dataclass(frozen=True)
class Toolbox:
    """What is installed: rules and formats, built-in and from plugins. Raises TrainlintError without any rule."""

    extra_rules: tuple[Path, ...] = ()

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """All rules by name."""
        found = collect(plugins.offered(self.manager, "trainlint_rules"))
        if not found:
            raise TrainlintError("no rules are installed")
        names = {rule.name for rule in found}
        own: list[Rule] = []
        for folder in self.extra_rules:
            for rule in loose(folder):
                if rule.name in names:
                    raise TrainlintError(f"the rule `{rule.name}` exists already", Place(rule.source))
                self.check_formats(rule)
                names.add(rule.name)
                own.append(rule)
        return (*found, *own)

    def check_formats(self, rule: Rule) -> None:
        """Refuse a rule for a format that there is not: it would never speak."""
        names = {one.name for one in self.formats}
        for name in rule.formats:
            if name not in names:
                raise RuleError(f"no format is named `{name}`: `trainlint formats` lists them", Place(rule.source))

    @cached_property
    def formats(self) -> tuple[Format, ...]:
        """All formats, the built-in ones first."""
        return (*built_in(), *plugins.offered(self.manager, "trainlint_formats"))

    @cached_property
    def manager(self) -> plugins.Manager:
        """The plugins."""
        return plugins.load()


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked: where to look, and what the command line says in place of the settings."""

    paths: tuple[str, ...] = (".",)
    asked: Settings = field(default_factory=Settings)
    config: Path | None = None
    suppressions: bool = True
    stdin: tuple[str, bytes] | None = None
    force_exclude: bool = False


@dataclass(slots=True)
class Session:
    """One pass over files: what was read, recognised and resolved."""

    request: Request
    toolbox: Toolbox
    settings: Settings
    explicit: frozenset[str]
    documents: dict[str, Document]
    fragments: list[Fragment] = field(default_factory=list)
    runs: list[Resolved] = field(default_factory=list)

    def settings_at(self, path: Path) -> Settings:
        """The settings for one file, the command line's words on top."""
        found = self.settings if self.request.config else nearest(Path(os.path.realpath(path)).parent)
        return found.at(path).told(self.request.asked)

    def opened(self, path: Path) -> list[Fragment]:
        """The fragments of a file that a config names and nobody asked to lint."""
        if syntax_of(str(path)) is None:
            return []
        document = read(str(path), _shown(path))
        fragments = [fragment for _, fragment in recognise(document, self.toolbox.formats)]
        if fragments:
            self.documents[document.file] = document
        return fragments


def open_session(request: Request) -> Session:
    """Read, recognise and resolve everything under the paths of a request."""
    start = Path(request.paths[0]) if request.paths else Path()
    folder = start if os.path.isdir(start) else start.parent
    settings = (
        (load_settings(request.config) or Settings()) if request.config else nearest(Path(os.path.realpath(folder)))
    )
    settings = settings.told(request.asked)
    toolbox = Toolbox(settings.rule_paths)
    found = _discovered(request, settings)
    documents = {}
    if found is not None:
        for path in found.files:
            documents[path] = read(path)
        for document in found.problems:
            documents[document.file] = document
    elif request.stdin is not None:
        name, text = request.stdin
        documents[name] = from_bytes(name, text, syntax_of(name) or "yaml")
    explicit = frozenset(Path(os.path.normpath(path)).as_posix() for path in request.paths)
    session = Session(request, toolbox, settings, explicit, documents)
    for document in documents.values():
        for _, fragment in recognise(document, toolbox.formats):
            session.fragments.append(fragment)
    formats = {format_.name: format_ for format_ in toolbox.formats}
    session.runs = resolve(session.fragments, formats, session.settings_at, request.asked, session.opened)
    return session


def _discovered(request: Request, settings: Settings) -> Discovery | None:
    if request.stdin is not None:
        return None
    return discover(request.paths, settings.exclude, settings.root, force_exclude=request.force_exclude)


def check(request: Request) -> tuple[Result, Session]:
    """Lint everything a request names."""
    session = open_session(request)
    findings: list[Finding] = []
    not_judged: list[NotJudged] = []
    judged = _Judge(session)
    findings += judged.texts()
    findings += judged.files()
    findings += judged.runs(not_judged)
    findings = _once(findings, {rule.name: rule for rule in session.toolbox.rules})
    findings, suppressed, own = suppress.apply(
        findings,
        session.documents.values(),
        session.toolbox.rules,
        judged.judged(not_judged),
        enabled=request.suppressions,
    )
    findings += [
        finding for finding in own if judged.selected(finding.rule, finding.rule.partition("-")[0], finding.place)
    ]
    findings = [judged.levelled(finding) for finding in findings]
    findings.sort(key=lambda finding: (*finding.place[:3], finding.rule, finding.message))
    formats: dict[str, str | None] = dict.fromkeys(session.documents)
    for fragment in session.fragments:
        formats[fragment.file] = formats.get(fragment.file) or fragment.format
    result = Result(
        findings=tuple(findings),
        files=tuple(CheckedFile(file, formats[file]) for file in sorted(formats)),
        runs=tuple(CheckedRun(resolved.run.root, resolved.run.files) for resolved in session.runs),
        not_judged=tuple(dict.fromkeys(not_judged)),
        suppressed=suppressed,
        sources={name: document.text for name, document in session.documents.items()},
    )
    return result, session


class _Judge:
    """Asks every selected rule."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.by_target: dict[str, list[Rule]] = {"run": [], "file": [], "text": []}
        for rule in session.toolbox.rules:
            self.by_target[rule.on].append(rule)
        self.families = {name: name.partition("-")[0] for name in suppress.OWN}
        self.families.update((rule.name, rule.family) for rule in session.toolbox.rules)
        self.settings: dict[str, Settings] = {}
        self.checked: set[Place] = set()
        self.check(session.settings)
        for word in (*session.request.asked.select, *session.request.asked.ignore, *session.request.asked.severity):
            if wrong := unknown(word, self.families):
                raise TrainlintError(wrong)

    def settings_for(self, file: str) -> Settings:
        found = self.settings.get(file)
        if found is None:
            found = self.settings[file] = self.session.settings_at(Path(file))
            self.check(found)
        return found

    def check(self, settings: Settings) -> None:
        """Refuse settings that name rules which nobody has."""
        for selector, place in settings.selectors:
            if place not in self.checked:
                self.checked.add(place)
                wrong = unknown(selector, self.families)
                if wrong:
                    raise TrainlintError(wrong, place)

    def judged(self, not_judged: Iterable[NotJudged]) -> Callable[[str, str], bool]:
        """Whether a rule was asked about all of a file."""
        files = {resolved.run.root: resolved.run.files for resolved in self.session.runs}
        skipped = {(one.rule, file) for one in not_judged for file in files[one.root]}
        return lambda rule, file: (
            (rule, file) not in skipped
            and self.selected(rule, self.families.get(rule, rule.partition("-")[0]), Place(file))
        )

    def selected(self, name: str, family: str, place: Place) -> bool:
        settings = self.settings_for(place.file)
        return enabled(name, family, settings.select, settings.ignore)

    def levelled(self, finding: Finding) -> Finding:
        level = self.settings_for(finding.place.file).severity
        severity = level.get(finding.rule) or level.get(finding.rule.partition("-")[0])
        return replace(finding, severity=severity) if severity else finding

    def texts(self) -> Iterator[Finding]:
        """What is odd about texts: of training configs; of other files that were named, only a word."""
        recognised = {fragment.file for fragment in self.session.fragments}
        for document in self.session.documents.values():
            if not document.problems:
                continue
            named = document.file in self.session.explicit
            config = document.file in recognised or any(hint in document.text for hint in HINTS)
            if not config and not named and document.text:
                continue
            certain = config or (named and not document.text)
            for rule in self.by_target["text"]:
                for finding in self.asked(rule, document, document.file):
                    yield finding if certain else _lowered(finding)

    def files(self) -> Iterator[Finding]:
        for fragment in self.session.fragments:
            view = FileView(
                fragment, {**versions_at(Path(fragment.file).parent), **self.settings_for(fragment.file).versions}
            )
            for rule in self.by_target["file"]:
                if not rule.formats or fragment.format in rule.formats:
                    yield from self.asked(rule, view, fragment.file)

    def runs(self, not_judged: list[NotJudged]) -> Iterator[Finding]:
        for resolved in self.session.runs:
            run = resolved.run
            view = RunView(run, resolved.fragments, memory_of(run))
            profile = run.profile.value if run.profile is not None else "default"
            names = {run.root_format, COMMANDS if resolved.fragments[0].starts else run.root_format}
            for rule in self.by_target["run"]:
                if rule.formats and names.isdisjoint(rule.formats):
                    continue
                if rule.profiles and profile not in rule.profiles:
                    continue
                if not any(self.selected(rule.name, rule.family, Place(file)) for file in run.files):
                    continue
                missing = tuple(path for path in rule.needs if path != "memory" and run.get(path) is None)
                if not missing and "memory" in rule.needs and view.memory is None:
                    missing = ("memory",)
                if missing:
                    not_judged.append(NotJudged(rule.name, run.root, missing))
                else:
                    yield from self.asked(rule, view, run.root)

    def asked(self, rule: Rule, view: object, file: str) -> Iterator[Finding]:
        """One rule's findings on one view."""
        for found in rule.check(view):
            finding = _finding(rule, found, file)
            if self.selected(rule.name, rule.family, finding.place):
                yield finding


def memory_of(run: TrainingRun) -> Callable[[], Assessment | None]:
    """The memory of a run, computed at the first question."""
    known: list[Assessment | None] = []

    def ask() -> Assessment | None:
        if not known:
            from trainlint.memory.forecast import assess

            known.append(assess(run))
        return known[0]

    return ask


def _finding(rule: Rule, found: Found, file: str) -> Finding:
    place = place_of(found.at) or Place(file)
    notes = ((place_of(spot), message) for spot, message in found.notes)
    related = tuple(Note(where, message) for where, message in notes if where is not None)
    return Finding(rule.name, found.severity or rule.severity, found.message, place, found.help, related, found.fix)


def _lowered(finding: Finding) -> Finding:
    """A file met on the way that can not be read is worth a word, no more."""
    severity: Severity = "info"
    return replace(finding, severity=severity)


def _once(findings: Iterable[Finding], rules: Mapping[str, Rule]) -> list[Finding]:
    """Each finding once, and none where a more specific rule speaks of the same place."""
    unique = list(dict.fromkeys(findings))
    outranked: set[tuple[str, Place]] = set()
    for finding in unique:
        rule = rules.get(finding.rule)
        if rule is not None:
            outranked.update((name, finding.place) for name in rule.outranks)
    return [finding for finding in unique if (finding.rule, finding.place) not in outranked]


def check_folder(path: Path, select: tuple[str, ...] = ()) -> Result:
    """Lint one folder as if one stood in it: its own `trainlint.toml`, names relative to it. For pages and tests."""
    import os

    asked = Settings(select=select, given=frozenset(("select",))) if select else Settings()
    before = Path.cwd()
    os.chdir(path)
    try:
        nearest.cache_clear()
        return check(Request(paths=(".",), asked=asked))[0]
    finally:
        os.chdir(before)


def _shown(path: Path) -> str:
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)
