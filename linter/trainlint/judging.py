"""Asking the rules: which are selected where, what each needs, and what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint import suppress
from trainlint.documents import Place
from trainlint.errors import TrainlintError
from trainlint.resolve.versions import versions_at
from trainlint.result import NotJudged
from trainlint.rule import COMMANDS, FileView, Finding, Found, Note, Rule, RunView, Severity, place_of
from trainlint.rulebook import enabled, unknown
from trainlint.run import TrainingRun
from trainlint.session import Session
from trainlint.settings import Settings

if TYPE_CHECKING:
    from trainlint.memory.assessment import Assessment

HINTS = ("per_device_train_batch_size", "learning_rate", "zero_optimization", "distributed_type", "base_model")
"""Words that make a broken text look like a training config."""


class Judge:
    """Asks every selected rule."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.by_target: dict[str, list[Rule]] = {"run": [], "file": [], "text": []}
        for rule in session.toolbox.rules:
            self.by_target[rule.on].append(rule)
        self.families = {name: name.partition("-")[0] for name in suppress.OWN}
        self.families.update((rule.name, rule.family) for rule in session.toolbox.rules)
        self.settings: dict[str, Settings] = {}
        self.selections: dict[tuple[tuple[str, ...], tuple[str, ...]], frozenset[str]] = {}
        self.checked: set[Place] = set()
        self.check(session.settings)
        for word in (*session.request.asked.select, *session.request.asked.ignore, *session.request.asked.severity):
            if wrong := unknown(word, self.families):
                raise TrainlintError(wrong)

    def settings_for(self, file: str) -> Settings:
        """The settings for one file."""
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
        return lambda rule, file: (rule, file) not in skipped and self.selected(rule, Place(file))

    def selected(self, name: str, place: Place) -> bool:
        """Whether a rule is asked for where a finding stands."""
        return name in self.asked_for(self.settings_for(place.file))

    def asked_for(self, settings: Settings) -> frozenset[str]:
        """The names of the rules that some settings ask for."""
        key = (settings.select, settings.ignore)
        if key not in self.selections:
            chosen = (name for name, family in self.families.items() if enabled(name, family, *key))
            self.selections[key] = frozenset(chosen)
        return self.selections[key]

    def levelled(self, finding: Finding) -> Finding:
        """A finding at the level that the settings give its rule."""
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
        """What rules find in each recognised file."""
        for fragment in self.session.fragments:
            view = FileView(
                fragment, {**versions_at(Path(fragment.file).parent), **self.settings_for(fragment.file).versions}
            )
            for rule in self.by_target["file"]:
                if not rule.formats or fragment.format in rule.formats:
                    yield from self.asked(rule, view, fragment.file)

    def runs(self, not_judged: list[NotJudged]) -> Iterator[Finding]:
        """What rules find in each run; `not_judged` takes those that lack something."""
        for resolved in self.session.runs:
            run = resolved.run
            known = {path for path, value in run.values.items() if value is not None}
            view = RunView(run, resolved.fragments, memory_of(run))
            profile = run.profile.value if run.profile is not None else "default"
            names = {run.root_format, COMMANDS if resolved.fragments[0].starts else run.root_format}
            chosen = frozenset[str]().union(*(self.asked_for(self.settings_for(file)) for file in run.files))
            for rule in self.by_target["run"]:
                if rule.formats and names.isdisjoint(rule.formats):
                    continue
                if rule.profiles and profile not in rule.profiles:
                    continue
                if rule.name not in chosen:
                    continue
                missing = tuple([path for path in rule.needs if path not in known and path != "memory"])
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
            if self.selected(rule.name, finding.place):
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


def once(findings: Iterable[Finding], rules: Mapping[str, Rule]) -> list[Finding]:
    """Each finding once, and none where a more specific rule speaks of the same place, be it in a note."""
    unique = list(dict.fromkeys(findings))
    outranked: set[tuple[str, Place]] = set()
    for finding in unique:
        rule = rules.get(finding.rule)
        if rule is not None:
            places = (finding.place, *(note.place for note in finding.related))
            outranked.update((name, place) for name in rule.outranks for place in places)
    return [finding for finding in unique if (finding.rule, finding.place) not in outranked]
