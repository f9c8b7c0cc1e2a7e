"""Defaults that a release of a package decides.

A run's versions are a pin (`4.41.2`), a specifier (`>=4.46,<5`) or unknown. `Release.since` answers "is it at least
that release?" with yes, no or None, and `by_release` puts the one default that is possible, or all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainlint.facts import history
from trainlint.facts.versions import VersionRange, parse, version
from trainlint.formats.format import Draft
from trainlint.run import Value


@dataclass(frozen=True, slots=True)
class Release:
    """The releases of a package that a run may use; None where nothing is known."""

    allowed: VersionRange | None = None

    def since(self, release: str) -> bool | None:
        """Whether the release is `release` or a later one; None where both are possible."""
        bound = version(release)
        if self.allowed is None or bound is None:
            return None
        for operator, other in self.allowed.clauses:
            if operator in ("==", ">=", ">") and other >= bound:
                return True
            if (operator == "<" and other <= bound) or (operator in ("==", "<=") and other < bound):
                return False
        return None


def release(versions: Mapping[str, Value[str]], package: str) -> Release:
    """What is known of the release of `package`."""
    value = versions.get(package)
    return Release(parse(value.value)) if value is not None and isinstance(value.value, str) else Release()


def companion(draft: Draft, framework: str, package: str = "transformers") -> None:
    """Note which releases of `package` the installed framework asks for, where nothing says which is installed.

    `framework` is known by its own release; the pins are those of its published packages.
    """
    known = draft.versions.get(framework)
    wanted = parse(known.value) if known is not None else None
    if package in draft.versions or wanted is None:
        return
    asked = history.framework(framework).companion(package, wanted)
    if asked is not None:
        note = f"{framework} {wanted.text} asks for it"
        draft.versions = {**draft.versions, package: Value(asked.text, "derived", note=note)}


def by_release(draft: Draft, path: str, package: str, *steps: tuple[str, object], unit: str = "") -> None:
    """Put a default that changed over releases: (first release, value), the oldest with an empty release.

    One possible value is put as the default, several as `possible`, each with the releases it holds for. A value of
    None stands for no default: nothing is put where that is the only one, and it drops out of several.
    """
    options: list[tuple[object, str]] = []
    known = release(draft.versions, package)
    for at, (first, value) in enumerate(steps):
        until = steps[at + 1][0] if at + 1 < len(steps) else ""
        if first and known.since(first) is False:
            continue
        if until and known.since(until) is True:
            continue
        options.append((value, holds(package, first, until)))
    spoken = [(value, note) for value, note in options if value is not None]
    if len(options) == 1 and spoken:
        draft.default(path, spoken[0][0], spoken[0][1], unit)
    elif len(spoken) == len(options) > 1:
        draft.either(path, *spoken)


def holds(package: str, first: str, until: str) -> str:
    """The releases of a default as notes name them: `transformers >=4.46,<5`."""
    bounds = ",".join(part for part in (f">={first}" if first else "", f"<{until}" if until else "") if part)
    return f"{package} {bounds}".strip()
