"""Which fragments make one run: what a root names, what starts it, and what beside it can only belong to it."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from trainlint.documents import Place
from trainlint.formats import Fragment, Reference
from trainlint.formats.launch.started import trainings
from trainlint.formats.scripts.reading import setup_of

Opener = Callable[[Path], list[Fragment]]
"""Reads a file that was named but not among those to lint; an empty list where it is no config."""

FILES = frozenset(("deepspeed", "accelerate", "adapter", "config", "script"))
"""Roles whose text may be the path of another config."""
PARTS = frozenset(("accelerate", "deepspeed", "peft-adapter", "model-config"))
"""Formats that are parts of a run and start none."""
ACCELERATED = frozenset(("accelerate", "axolotl", "trl", "oumi"))
"""Launchers that start through accelerate, and so read its config."""
LEVELS = 6
"""Folders in which a named file is sought: the config's own and those above."""
WAYS = 8
"""Of more launchers than these it is not asked which one starts a run."""
MODEL_FILES = ("config.json",)
ADAPTER_FILES = ("adapter_config.json",)


class Reason(NamedTuple):
    """Why a file belongs to a run: it is the root, is named, starts the root, or lies beside it.

    `by` is the other file, `key` and `place` say where one names the other (a launcher names what it starts).
    """

    how: Literal["root", "named", "starts", "beside"]
    by: str = ""
    key: str = ""
    place: Place | None = None


class Member(NamedTuple):
    """A fragment of a run, and why it belongs to it."""

    fragment: Fragment
    reason: Reason


class Joiner:
    """Groups fragments into runs, each a list with its root first."""

    def __init__(self, fragments: Iterable[Fragment], opened: Opener) -> None:
        self.fragments = list(fragments)
        self.open = opened
        self.by_path: dict[Path, list[Fragment]] = defaultdict(list)
        for fragment in self.fragments:
            self.by_path[Path(fragment.file).resolve()].append(fragment)
        self.claimed: set[int] = set()

    def runs(self) -> list[list[Member]]:
        """All runs: one per fragment that starts one, then one per fragment that no other claims."""
        self.promote()
        roots = [fragment for fragment in self.fragments if fragment.launches]
        started: dict[int, list[Fragment]] = defaultdict(list)
        for launcher in [fragment for fragment in self.fragments if fragment.starts]:
            for named in self.named(launcher):
                if (named.launches or named.starts) and named is not launcher:
                    started[id(named)].append(launcher)
        runs = []
        for root in roots:
            if root.format == "python-script" and any(
                launcher.launches or self.hands(launcher, root) for launcher in started[id(root)]
            ):
                continue  # the command line that runs it, or the config it is given, carries the run's values
            runs += [self.run(root, way) for way in self.ways(root, started)]
        self.beside(runs)
        rest = sorted(self.fragments, key=lambda fragment: not fragment.starts)  # launchers claim what they name
        runs += [self.run(fragment, []) for fragment in rest if id(fragment) not in self.claimed]
        return runs

    def promote(self) -> None:
        """A trainer's config that does not say it trains does so where a launcher hands it to a trainer."""
        for launcher in [fragment for fragment in self.fragments if fragment.starts]:
            handed = [reference for reference in launcher.references if reference.role == "config"]
            for named in self.named(launcher, handed):
                if named.format not in PARTS and not named.starts:
                    named.launches = True

    def hands(self, launcher: Fragment, script: Fragment) -> bool:
        """Whether a launcher runs a script that takes its arguments from a trainer's config, which it is given."""
        made = setup_of(script)
        if made is None or made.config is not None:
            return False
        handed = [reference for reference in launcher.references if reference.role == "config"]
        for start in trainings(launcher):
            first, last = start.command.place.line, start.command.place.end_line
            inside = [one for one in handed if first <= one.place.line <= last]
            runs = start.program is not None and (start.program.text or "").endswith(Path(script.file).name)
            if runs and any(one.launches and one.format != "python-script" for one in self.named(launcher, inside)):
                return True
        return False

    def ways(self, root: Fragment, started: Mapping[int, list[Fragment]]) -> list[list[Fragment]]:
        """Each way a root is started: a launcher with what starts that in turn; those that say the same are one.

        Where there are many, it is not known which one is meant, and none joins.
        """
        distinct: dict[object, list[Fragment]] = {}
        for way in _ways(root, started, ()):
            said = [(path, repr(value.value)) for launcher in way for path, value in launcher.values.items()]
            files = {id(named) for launcher in way for named in self.named(launcher)}
            distinct.setdefault((frozenset(said), frozenset(files)), way)
        return list(distinct.values()) if len(distinct) <= WAYS else [[]]

    def run(self, root: Fragment, launchers: list[Fragment]) -> list[Member]:
        """A root, what starts it, and all that these name, each once."""
        members: list[Member] = []
        todo = [Member(root, Reason("root"))]
        started = root
        for launcher in launchers:
            todo.append(Member(launcher, self.starting(launcher, started)))
            started = launcher
        while todo:
            member = todo.pop(0)
            fragment = member.fragment
            if any(fragment is other.fragment for other in members):
                continue
            members.append(member)
            self.claimed.add(id(fragment))
            todo += [
                Member(one, Reason("named", fragment.file, reference.key, reference.place))
                for one, reference in self.naming(fragment)
                if not one.starts and (not one.launches or one.format == "python-script")
            ]
        return members

    def starting(self, launcher: Fragment, started: Fragment) -> Reason:
        """Where a launcher names what it starts."""
        for one, reference in self.naming(launcher):
            if one is started:
                return Reason("starts", started.file, reference.key, reference.place)
        return Reason("starts", started.file)

    def named(self, fragment: Fragment, references: Iterable[Reference] | None = None) -> list[Fragment]:
        """The fragments of the files that one fragment names, by all or some of its references."""
        return [one for one, _ in self.naming(fragment, references)]

    def naming(
        self, fragment: Fragment, references: Iterable[Reference] | None = None
    ) -> Iterator[tuple[Fragment, Reference]]:
        """The same, each with the reference that names it."""
        for reference in fragment.references if references is None else references:
            path = self.path_of(fragment, reference)
            if path is not None:
                if path not in self.by_path:
                    self.by_path[path] = self.open(path)
                for one in self.by_path[path]:
                    yield one, reference

    def path_of(self, fragment: Fragment, reference: Reference) -> Path | None:
        """The file a reference means."""
        if reference.role not in FILES and reference.role != "model":
            return None
        return find_file(
            Path(fragment.file), reference.text, MODEL_FILES if reference.role in ("model", "adapter") else ()
        )

    def beside(self, runs: list[list[Member]]) -> None:
        """An accelerate config that nothing names joins the only root of its folder, if it is the only one there."""
        folders: dict[Path, list[list[Member]]] = defaultdict(list)
        for run in runs:
            folders[Path(run[0].fragment.file).resolve().parent].append(run)
        loose: dict[Path, list[Fragment]] = defaultdict(list)
        for fragment in self.fragments:
            if fragment.format == "accelerate" and id(fragment) not in self.claimed:
                loose[Path(fragment.file).resolve().parent].append(fragment)
        for folder, fragments in loose.items():
            there = folders.get(folder, [])
            if len(fragments) == 1 and len({id(run[0].fragment) for run in there}) == 1:
                for run in there:
                    if not _ignores(run) and not any(member.fragment.format == "accelerate" for member in run):
                        first, *named = self.run(fragments[0], [])
                        run += [Member(first.fragment, Reason("beside", run[0].fragment.file)), *named]


def _ignores(run: list[Member]) -> bool:
    """Whether the run is known to be started by launchers that read no accelerate config: torchrun, `python`, …"""
    launchers = {start.launcher for member in run if member.fragment.starts for start in trainings(member.fragment)}
    return bool(launchers) and launchers.isdisjoint(ACCELERATED)


def _ways(
    fragment: Fragment, started: Mapping[int, list[Fragment]], below: tuple[Fragment, ...]
) -> list[list[Fragment]]:
    launchers = [one for one in started.get(id(fragment), ()) if not any(one is other for other in below)]
    ways = [[one, *way] for one in launchers for way in _ways(one, started, (*below, fragment))]
    return ways or [[]]


def find_file(origin: Path, text: str, inside: tuple[str, ...] = ()) -> Path | None:
    """A file named in `origin`: relative to its folder or to one above (the folder a command is run from)."""
    if not text or "\n" in text or "\0" in text or len(text) > 300 or "://" in text or "$" in text:
        return None
    names = [text] if not inside else [*(f"{text.rstrip('/')}/{name}" for name in inside), text]
    within = not os.path.isabs(text)
    for folder in _above(os.path.dirname(os.path.abspath(origin))):
        for name in names:
            path = f"{folder}/{name}" if within else name
            if os.path.isfile(path):
                return Path(os.path.realpath(path))
    return None


@lru_cache(maxsize=4096)
def _above(folder: str) -> tuple[str, ...]:
    """A folder and those above it: at most six, up to the top of a repository."""
    folder = os.path.realpath(folder)
    folders = [folder]
    while len(folders) < LEVELS and not os.path.exists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
        folders.append(folder)
    return tuple(folders)
