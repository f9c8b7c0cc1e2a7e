"""Keys that a release took away: which of those written are gone in the releases that a run may use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainlint.documents import Entry
from trainlint.facts import history
from trainlint.facts.history import Key
from trainlint.facts.versions import VersionRange, parse
from trainlint.formats.fragment import Fragment
from trainlint.run import Value

ASKING = ("trl", "llamafactory", "axolotl")
"""Frameworks whose releases say which transformers they need."""


@dataclass(frozen=True, slots=True)
class Departed:
    """A written key that some release does not have any more.

    `certain`: none of the releases that may run has it; False where nothing is known of them or some have it. `pin`
    says which they are, None where nobody does; `release` is the same for messages.
    """

    entry: Entry
    key: Key
    certain: bool
    pin: Value[str] | None
    release: str

    @property
    def left(self) -> str:
        """The first minor release without the key: `0.20`."""
        return ".".join((self.key.removed_in or "").split(".")[:2])


def installed(versions: Mapping[str, Value[str]], package: str) -> tuple[VersionRange | None, Value[str] | None]:
    """The releases of a package that a run may use, and what says so: its pin, or that of a framework that needs it."""
    pin = versions.get(package)
    if pin is not None:
        return parse(pin.value), pin
    for asking in ASKING if package == "transformers" else ():
        wanted = parse(versions[asking].value) if asking in versions else None
        if wanted is not None:
            return history.framework(asking).companion(package, wanted), versions[asking]
    return None, None


def since(versions: Mapping[str, Value[str]], package: str, release: str) -> bool | None:
    """Whether a run uses that release of a package or a later one; None where both are possible."""
    from trainlint.formats.release import Release

    return Release(installed(versions, package)[0]).since(release)


def departed(
    fragment: Fragment, versions: Mapping[str, Value[str]], framework: str, *sections: str
) -> Iterator[Departed]:
    """The top-level keys of a fragment that went with some release and may be gone, in the order of the file."""
    known = history.framework(framework)
    wanted, pin = installed(versions, framework)
    for name, entry in fragment.keys.items():
        for section in sections:
            key = known.section(section).get(name) if "." not in name else None
            if key is None or key.framework != framework or key.removed_in is None or key.known_in(wanted) is True:
                continue
            certain = wanted is not None and key.known_in(wanted) is False and _went(key, wanted)
            if wanted is not None and not certain and key.known_in(wanted) is False:
                continue  # it is still to come
            release = framework if pin is None else f"{framework} {pin.value}"
            if pin is not None and pin.key != framework:
                release = f"the {framework} that {pin.key} {pin.value} needs"
            yield Departed(entry, key, certain, pin, release)
            break


def _went(key: Key, wanted: VersionRange) -> bool:
    low, gone = wanted.lowest, parse(f">={key.removed_in}")
    return low is None or gone is None or low in gone
