"""What a rule is: what it needs, whom it concerns, and what it finds.

A rule is a function under `@rule`, alone in its module; the module's name is the rule's name, the folder its family.
It is called once per run (`on="run"`) or once per recognised file (`on="file"`), only when everything it `needs` is
known, and yields `Found`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from trainlint.documents import Document, Entry, Node, Place, Scalar
from trainlint.errors import TrainlintError
from trainlint.formats import Fragment
from trainlint.run import TrainingRun, Value

if TYPE_CHECKING:
    from trainlint.memory.assessment import Assessment

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error")
Target = Literal["run", "file", "text"]
Written = Value[object] | Value[str] | Value[int] | Value[float] | Value[bool] | Entry
Spot = (
    Value[object] | Value[str] | Value[int] | Value[float] | Value[bool] | Value[tuple[str, ...]] | Place | Entry | Node
)


class RuleError(TrainlintError):
    """A rule that can not be used, and where it says so."""


@dataclass(frozen=True, slots=True)
class Note:
    """A second place that belongs to a finding, with a few words."""

    place: Place
    message: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace what stands at `place` by `text`; an empty stretch inserts."""

    place: Place
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A change of the text. *safe*: the training stays what was meant; *unsafe*: a choice that someone has to make."""

    edits: tuple[Edit, ...]
    safety: Literal["safe", "unsafe"] = "unsafe"
    title: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule yields. `at` is the one primary place: a value of the run, an entry, a node or a place.

    `notes` are further places with a few words each, `severity` overrides the rule's own, `outranks` names rules whose
    finding on the same values this one replaces.
    """

    at: Spot
    message: str
    help: str = ""
    notes: Iterable[tuple[Spot | None, str]] = ()
    fix: Fix | None = None
    severity: Severity | None = None


class Code(NamedTuple):
    """The line of code that a finding in a notebook stands on, and its stretch there."""

    line: str
    column: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding as it is reported; `code` where the file holds the line in another form."""

    rule: str
    severity: Severity
    message: str
    place: Place
    help: str = ""
    related: tuple[Note, ...] = ()
    fix: Fix | None = None
    code: Code | None = None


@dataclass(slots=True)
class RunView:
    """What a rule sees of a run: the run, the fragments it was read from, and its memory when somebody asks."""

    run: TrainingRun
    fragments: tuple[Fragment, ...]
    assess: Callable[[], Assessment | None]

    @property
    def memory(self) -> Assessment | None:
        """The memory the run needs and what that means for the device; None where it can not be said."""
        return self.assess()

    @property
    def root(self) -> Fragment:
        """The fragment that the run starts from."""
        return self.fragments[0]

    def fragment(self, *formats: str) -> Fragment | None:
        """The first fragment of one of these formats; `shell-launcher` stands for every launcher with commands."""
        launchers = COMMANDS in formats
        return next(
            (one for one in self.fragments if one.format in formats or (launchers and one.starts)),
            None,
        )

    def key(self, path: str, otherwise: str = "") -> str:
        """The user's own key for a path of the run, or `otherwise`, or the path."""
        value = self.run.get(path)
        return value.key if value is not None and value.key else otherwise or path


@dataclass(slots=True)
class FileView:
    """What a rule sees of one recognised file: its fragment, and the versions known where it lies."""

    fragment: Fragment
    versions: Mapping[str, Value[str]] = field(default_factory=dict)

    @property
    def document(self) -> Document:
        """The file as read."""
        return self.fragment.document


RunCheck = Callable[[RunView], Iterable[Found]]
FileCheck = Callable[[FileView], Iterable[Found]]
TextCheck = Callable[[Document], Iterable[Found]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, ready to run. `page` is the text of its page, `source` the file it comes from."""

    name: str
    family: str
    severity: Severity
    check: Callable[..., Iterable[Found]]
    on: Target = "run"
    needs: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    outranks: tuple[str, ...] = ()
    page: Callable[[], str] = str
    source: str = ""


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """What the decorator leaves on a function until the module's name makes it a rule."""

    severity: Severity
    check: Callable[..., Iterable[Found]]
    on: Target
    needs: tuple[str, ...]
    formats: tuple[str, ...]
    profiles: tuple[str, ...]
    outranks: tuple[str, ...]


def rule(
    *,
    severity: Severity,
    on: Target = "run",
    needs: Iterable[str] = (),
    formats: Iterable[str] = (),
    profiles: Iterable[str] = (),
    outranks: Iterable[str] = (),
) -> Callable[[Callable[..., Iterable[Found]]], RuleSpec]:
    """Make a function a rule.

    `on`: *run* — called with a RunView per run; *file* — with a FileView per recognised file; *text* — with the
    Document of every file that was read, recognised or not, when something is odd about its text.
    `needs`: paths of the run that must be known (`memory` for the estimate), else the rule is not judged and `-v` says
    so. `formats`: the root's format (run) or the file's must be one of these. `profiles`: only under these settings
    profiles. `outranks`: rules that stay silent where this one speaks of the same place.
    """

    def made(check: Callable[..., Iterable[Found]]) -> RuleSpec:
        return RuleSpec(severity, check, on, tuple(needs), tuple(formats), tuple(profiles), tuple(outranks))

    return made


COMMANDS = "shell-launcher"
"""What rules that read command lines name as their format; they hold for commands inside other launchers too."""


NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")
"""A rule's name: `<family>-<mistake>`, kebab-case."""


def place_of(spot: Spot | None) -> Place | None:
    """Where something stands, or None for what stands nowhere (a default, a derived value)."""
    match spot:
        case Place() | None:
            return spot
        case Entry():
            return spot.value.place
        case Value():
            return spot.place
        case _:
            return spot.place


def written(value: object) -> str:
    """A value as messages print it: `true`, `1024`, `2e-05`, a word."""
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case float() if value == int(value) and abs(value) < 1e15:
            return str(int(value))
        case float():
            return f"{value:g}"
        case tuple() | list():
            return "[" + ", ".join(written(item) for item in value) + "]"
        case _:
            return str(value)


def said(spot: Written) -> str:
    """A key with its value as the user wrote both: `warmup_steps: 100`, `--warmup_steps 100` on a command line; of a
    list or mapping the key alone."""
    if isinstance(spot, Entry):
        key = spot.key.raw if spot.key.raw.startswith("-") else spot.name
        if not isinstance(spot.value, Scalar):
            return key
        value = spot.value.raw or written(spot.value.value)
    else:
        key, value = spot.key, spot.raw or written(spot.value)
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    if key.startswith("#SBATCH"):
        return f"{key}={value}"
    return f"{key} {value}" if key.startswith("-") else f"{key}: {value}"


def set_value(node: Node, text: str, safety: Literal["safe", "unsafe"] = "unsafe", title: str = "") -> Fix:
    """A fix that writes another value in place of a node."""
    return Fix((Edit(node.place, text),), safety, title)


def rename_key(entry: Entry, name: str, safety: Literal["safe", "unsafe"] = "safe") -> Fix:
    """A fix that gives a key another name, keeping quotes as they are."""
    raw = entry.key.raw
    quoted = raw[:1] if raw[:1] in "\"'" else ""
    return Fix((Edit(entry.key.place, f"{quoted}{name}{quoted}"),), safety, f"rename `{entry.name}` to `{name}`")


def remove_line(document: Document, entry: Entry, safety: Literal["safe", "unsafe"] = "unsafe") -> Fix | None:
    """A fix that takes a key with its value out, where they fill whole lines of YAML or TOML; else None."""
    first, last = entry.key.place, entry.value.place
    if document.syntax not in ("yaml", "toml") or not isinstance(entry.key.value, str):
        return None
    if document.line(first.line)[: first.column - 1].strip():
        return None
    end_line = last.end_line if last.end_column > 1 else last.end_line - 1
    rest = document.line(end_line)[last.end_column - 1 :].strip() if last.end_column > 1 else ""
    if rest and not rest.startswith("#"):
        return None
    return Fix(
        (Edit(Place(first.file, first.line, 1, max(end_line, first.line) + 1, 1), ""),),
        safety,
        f"remove `{entry.name}`",
    )
