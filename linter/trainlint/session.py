"""One pass over files: what is installed, what was asked, and what was read, recognised and resolved."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from trainlint import plugins
from trainlint.discover import Discovery, discover
from trainlint.documents import Document, Place, from_bytes, read, syntax_of
from trainlint.errors import TrainlintError
from trainlint.facts import store
from trainlint.formats import Format, Fragment
from trainlint.formats.registry import built_in, recognise
from trainlint.resolve import Resolved, resolve
from trainlint.rule import Rule, RuleError
from trainlint.rulebook import collect, loose
from trainlint.settings import Settings, nearest
from trainlint.settings import load as load_settings


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
        return (*built_in(), *self.further)

    @cached_property
    def further(self) -> tuple[Format, ...]:
        """The formats that plugins bring."""
        return tuple(plugins.offered(self.manager, "trainlint_formats"))

    def recognised(self, document: Document) -> Iterator[tuple[Format, Fragment]]:
        """What a document is: its fragments with their format, none where it is no training config."""
        return recognise(document, (*built_in(document.syntax), *self.further))

    @cached_property
    def manager(self) -> plugins.Manager:
        """The plugins. The facts they bring are added here, before anything is looked up."""
        manager = plugins.load()
        for name, path in plugins.offered(manager, "trainlint_facts"):
            try:
                store.add(name, str(path))
            except (OSError, ValueError) as error:
                raise TrainlintError(f"{path}: no facts of `{name}`: {error}", Place(str(path))) from None
        return manager


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
    formats: dict[str, Format] = field(default_factory=dict)
    by_folder: dict[str, tuple[Settings, Settings]] = field(default_factory=dict)

    def settings_at(self, path: Path) -> Settings:
        """The settings for one file, the command line's words on top; one object for files that share them."""
        folder = os.path.dirname(os.path.realpath(path))
        if folder not in self.by_folder:
            found = self.settings if self.request.config else nearest(Path(folder))
            same = next((pair for pair in self.by_folder.values() if pair[0] is found), None)
            self.by_folder[folder] = same or (found, found.told(self.request.asked))
        found, told = self.by_folder[folder]
        return found.at(path).told(self.request.asked) if found.overrides else told

    def recognised(self, document: Document) -> list[Fragment]:
        """The fragments of a document; their formats are kept, to complete the runs."""
        found = list(self.toolbox.recognised(document))
        self.formats.update({form.name: form for form, _ in found})
        return [fragment for _, fragment in found]

    def opened(self, path: Path) -> list[Fragment]:
        """The fragments of a file that a config names and nobody asked to lint."""
        if syntax_of(str(path)) is None:
            return []
        document = read(str(path), _shown(path))
        fragments = self.recognised(document)
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
        session.fragments += session.recognised(document)
    session.runs = resolve(session.fragments, session.formats, session.settings_at, request.asked, session.opened)
    return session


def _discovered(request: Request, settings: Settings) -> Discovery | None:
    if request.stdin is not None:
        return None
    return discover(request.paths, settings.exclude, settings.root, force_exclude=request.force_exclude)


def _shown(path: Path) -> str:
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)
