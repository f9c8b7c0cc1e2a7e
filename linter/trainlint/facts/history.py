"""The frameworks' config keys through their versions: when each came, its default, and when it was renamed or went.

`history/<framework>.json` is read when a framework is first asked for. One release a minor version was read, so a
removal is exact to the minor version, and a key's first version is "or earlier" when it is the oldest release read. A
release newer than all that were read is taken to be like the newest; `Framework.covers` says whether that was needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, cached_property
from typing import Any, Final

from trainlint.facts import store
from trainlint.facts.versions import VersionRange, parse, version

Installed = Mapping[str, VersionRange]
"""Package name to the versions it may have; a package that is missing has an unknown version."""


class _Unknown(Enum):
    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown.UNKNOWN
"""A default that is not known: it differs between the versions that may run, or the framework computes it."""


@dataclass(frozen=True)
class Key:
    """A config key in the versions of `framework` (the package whose version decides, for inherited keys the parent's).

    `types`: names as the source has them, over all versions. `first_seen`: None when that is the oldest release read.
    `removed_in`, `deprecated_in`: the first release without it, or that warns. `renamed_to`: what to write instead.
    """

    framework: str
    section: str
    name: str
    types: tuple[str, ...]
    required: bool
    first_seen: str | None
    deprecated_in: str | None
    removed_in: str | None
    renamed_to: str | None
    note: str | None
    _entry: Mapping[str, Any] = field(repr=False, compare=False)

    def _releases(self, versions: VersionRange | None) -> tuple[str, ...]:
        releases = framework(self.framework).versions
        return releases if versions is None else versions.among(releases)

    def _before(self, release: str, other: str | None) -> bool:
        place = framework(self.framework).place
        return other is not None and place[release] < place[other]

    def _in(self, release: str) -> bool:
        gone = self.removed_in is not None and not self._before(release, self.removed_in)
        return not gone and not self._before(release, self.first_seen) and release not in self._entry.get("absent", ())

    def known_in(self, versions: VersionRange | None) -> bool | None:
        """True: in all releases that `versions` (None: any) may mean; False: in none; None: in some, or not known."""
        answers = {self._in(release) for release in self._releases(versions)}
        return answers.pop() if len(answers) == 1 else None

    def deprecated(self, versions: VersionRange | None) -> bool | None:
        """Whether the releases that have it warn of it; None: some do."""
        since = self.deprecated_in
        answers = {since is not None and not self._before(release, since) for release in self._releases(versions)}
        return answers.pop() if len(answers) == 1 else None

    def _default(self, release: str) -> Any:
        value = self._entry.get("default", UNKNOWN)
        for since, *changed in self._entry.get("defaults", ()):
            if not self._before(release, since):
                value = changed[0] if changed else UNKNOWN
        return value

    def defaults_in(self, versions: VersionRange | None) -> tuple[Any, ...]:
        """Every value the default may have, UNKNOWN among them where it is computed; empty when required."""
        if self.required:
            return ()
        values: list[Any] = []
        for release in self._releases(versions):
            if self._in(release):
                value = self._default(release)
                for one in value["$one_of"] if isinstance(value, dict) and "$one_of" in value else [value]:
                    if not any(one is old or (type(one) is type(old) and one == old) for old in values):
                        values.append(one)
        return tuple(values)

    def default_in(self, versions: VersionRange | None) -> Any:
        """The default, if it is the same in all releases that `versions` (None: any) may mean; else UNKNOWN."""
        values = self.defaults_in(versions)
        return values[0] if len(values) == 1 else UNKNOWN

    def choices_in(self, versions: VersionRange | None) -> tuple[Any, ...] | None:
        """The values that some release in `versions` takes; None when the key is not one of a choice, or any."""
        choices = self._entry.get("enum")
        if choices is None:
            return None
        releases = self._releases(versions)
        if isinstance(choices, str):
            listed = framework(self.framework).section(choices)
            return tuple(name for name, value in listed.items() if value.known_in(versions) is not False)
        found = set(choices)
        for since, added, removed in reversed(self._entry.get("choices", ())):
            if any(self._before(release, since) for release in releases):
                found |= set(removed)
            if all(self._before(release, since) for release in releases):
                found -= set(added)
        return tuple(sorted(found, key=str)) or None


class Section(Mapping[str, Key]):
    """The keys of one section by name, those it inherits from another framework's class among them."""

    def __init__(self, owner: Framework, name: str) -> None:
        self.name = name
        self.owner = owner
        self._keys: dict[str, Key] = {}

    @cached_property
    def _parts(self) -> tuple[dict[str, tuple[str | None, dict[str, Any]]], Section | None]:
        """The framework's own entries, each with its section's first version, and the parent in another framework."""
        raw = self.owner.raw[self.name]
        first = None if raw["first"] == self.owner.versions[0] else raw["first"]
        own: dict[str, tuple[str | None, dict[str, Any]]] = {}
        parent: Section | None = None
        inherits = raw.get("inherits")
        if inherits and ":" in inherits and inherits not in self.owner.raw:
            other, _, section = inherits.partition(":")
            parent = framework(other).section(section)
        elif inherits:
            above, parent = self.owner.section(inherits)._parts
            own = {key: entry for key, entry in above.items() if key not in raw.get("without", ())}
        return own | {key: (first, entry) for key, entry in raw["keys"].items()}, parent

    @property
    def inherits(self) -> str | None:
        """The framework whose keys it has besides its own."""
        parent = self._parts[1]
        return parent.owner.name if parent else None

    def own(self, name: str) -> Key | None:
        """The key as the framework itself defines it."""
        found = self._parts[0].get(name)
        if found is None:
            return None
        if name not in self._keys:
            first, entry = found
            self._keys[name] = Key(
                framework=self.owner.name,
                section=self.name,
                name=name,
                types=tuple(entry["types"].split("|")) if "types" in entry else (),
                required=entry.get("required", False),
                first_seen=None if entry.get("first") == self.owner.versions[0] else entry.get("first", first),
                deprecated_in=entry.get("deprecated"),
                removed_in=entry.get("removed"),
                renamed_to=entry.get("renamed"),
                note=entry.get("note"),
                _entry=entry,
            )
        return self._keys[name]

    def __getitem__(self, name: str) -> Key:
        own, parent = self.own(name), self._parts[1]
        if parent is not None and name in parent and (own is None or own.removed_in):
            return parent[name]
        if own is None:
            raise KeyError(name)
        return own

    def __iter__(self) -> Iterator[str]:
        own, parent = self._parts
        yield from own
        if parent is not None:
            yield from (name for name in parent if name not in own)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def versions_of(self, key: Key, installed: Installed) -> VersionRange | None:
        """The versions that decide about a key: its package's, or what the framework's version asks of that package."""
        package = framework(key.framework).package
        if package in installed or key.framework == self.owner.name:
            return installed.get(package)
        return self.owner.companion(package, installed.get(self.owner.package))

    def lookup(self, name: str, installed: Installed) -> Key | None:
        """The key that counts in the installed versions: the framework's own, else the inherited; None: never known."""
        own, parent = self.own(name), self._parts[1]
        if own is not None and parent is not None and name in parent:
            return own if own.known_in(self.versions_of(own, installed)) else parent[name]
        return self.get(name)

    def known_in(self, name: str, installed: Installed) -> bool | None:
        """Whether the installed versions take the key; None: some do, or not known. False too if it never existed."""
        key = self.lookup(name, installed)
        return key.known_in(self.versions_of(key, installed)) if key else False

    def default_in(self, name: str, installed: Installed) -> Any:
        """The key's default in the installed versions, or UNKNOWN; KeyError if it never existed."""
        own, parent = self.own(name), self._parts[1]
        key = self.lookup(name, installed) or self[name]
        value = key.default_in(self.versions_of(key, installed))
        if own is not None and parent is not None and name in parent:
            versions = self.versions_of(own, installed)
            if own.known_in(versions) is None and (value,) != own.defaults_in(versions):
                return UNKNOWN
        return value

    def names_for(self, installed: Installed) -> frozenset[str]:
        """The names that the installed versions may take."""
        return frozenset(name for name in self if self.known_in(name, installed) is not False)


class Framework:
    """A framework's sections, and the releases that were read."""

    def __init__(self, name: str) -> None:
        data = store.read("history", name)
        self.name = name
        self.package: str = data["package"]
        self.versions: tuple[str, ...] = tuple(data["versions"])
        self.place = {release: place for place, release in enumerate(self.versions)}
        self.raw: dict[str, Any] = data["sections"]
        self.pins: dict[str, dict[str, str]] = data.get("pins", {})
        self._sections: dict[str, Section] = {}

    @property
    def sections(self) -> tuple[str, ...]:
        """The names of its sections."""
        return tuple(self.raw)

    def section(self, name: str) -> Section:
        """The section of that name; KeyError if there is none."""
        if name not in self.raw:
            raise KeyError(name)
        return self._sections.setdefault(name, Section(self, name))

    def covers(self, versions: VersionRange | None) -> bool:
        """Whether releases were read for all of the range: none is older than the oldest or newer than the newest."""
        if versions is None:
            return False
        oldest, newest = version(self.versions[0]), version(self.versions[-1])
        low, high = versions.lowest, versions.highest
        if oldest is None or newest is None or low is None or high is None:
            return False
        return oldest.minor <= low.minor and high.minor <= (newest.minor[0], newest.minor[1] + 1)

    def companion(self, package: str, versions: VersionRange | None) -> VersionRange | None:
        """The versions of another package that the releases in `versions` (None: any) ask for; None: any."""
        pins = self.pins.get(package, {})
        releases = self.versions if versions is None else versions.among(self.versions)
        asked = [parse(pins[release]) if release in pins else None for release in releases]
        lows = [pin.lowest if pin else None for pin in asked]
        highs = [pin.highest if pin else None for pin in asked]
        parts = []
        if all(lows):
            parts.append(f">={min(low for low in lows if low)}")
        if all(highs):
            exact = all(pin and pin.pinned for pin in asked)
            parts.append(f"{'<=' if exact else '<'}{max(high for high in highs if high)}")
        return parse(",".join(parts)) if parts else None


@cache
def framework(name: str) -> Framework:
    """The history of a framework; KeyError when none was read."""
    if name not in store.names("history"):
        raise KeyError(name)
    return Framework(name)


def frameworks() -> tuple[str, ...]:
    """The names of all frameworks with a history."""
    return store.names("history")


def closest(name: str, names: Iterable[str]) -> str | None:
    """The name meant by a misspelt one: the likest, if it is like enough; None otherwise."""
    from difflib import get_close_matches

    folded = {other.lower().replace("-", "_"): other for other in sorted(names, reverse=True)}
    close = get_close_matches(name.lower().replace("-", "_"), folded, n=1, cutoff=0.8)
    return folded[close[0]] if close else None
