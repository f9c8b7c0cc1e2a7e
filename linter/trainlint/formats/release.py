"""Which releases of a package a run may use, and defaults that a release decides.

A run's versions are a pin (`4.41.2`), a specifier (`>=4.46,<5`) or unknown. `Release.since` answers "is it at least
that release?" with yes, no or None, and `by_release` puts the one default that is possible, or all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from trainlint.formats.format import Draft
from trainlint.run import Value

Number = tuple[int, ...]
_CLAUSE = re.compile(r"\s*(===|==|~=|>=|<=|!=|>|<)?\s*v?(\d+(?:\.\d+)*)(\.\*)?\S*\s*")


@dataclass(frozen=True, slots=True)
class Release:
    """The releases from `low` (included) up to `high` (excluded); None where there is no bound."""

    low: Number | None = None
    high: Number | None = None

    def since(self, version: str) -> bool | None:
        """Whether the release is `version` or a later one; None where both are possible."""
        bound = number(version)
        if self.low is not None and self.low >= bound:
            return True
        if self.high is not None and self.high <= bound:
            return False
        return None


def number(version: str) -> Number:
    """A release as a comparable tuple: `4.41.2` → (4, 41, 2), without trailing zeros."""
    parts = [int(part) for part in re.findall(r"\d+", version.split("+")[0])[:3]]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def parse(text: str) -> Release:
    """The releases that a pin or a PEP 440 specifier allows; what is not understood bounds nothing."""
    low: Number | None = None
    high: Number | None = None
    for clause in text.split(","):
        match = _CLAUSE.fullmatch(clause)
        if match is None:
            continue
        sign, version, star = match.groups()
        at = [int(part) for part in version.split(".")]
        after = number(".".join(map(str, [*at[:-1], at[-1] + 1])))
        exact = number(version)
        floor: Number | None
        roof: Number | None
        if sign in (None, "==", "==="):
            floor, roof = exact, after if star else (*at, *(0,) * (3 - len(at)), 1)
        elif sign == "~=":
            floor, roof = exact, number(".".join(map(str, [*at[:-2], at[-2] + 1]))) if len(at) > 1 else None
        elif sign in (">=", ">"):
            floor, roof = exact, None
        elif sign == "<":
            floor, roof = None, exact
        elif sign == "<=":
            floor, roof = None, (*at, *(0,) * (3 - len(at)), 1)
        else:
            continue
        low = floor if low is None or (floor is not None and floor > low) else low
        high = roof if high is None or (roof is not None and roof < high) else high
    return Release(low, high)


def release(versions: Mapping[str, Value[str]], package: str) -> Release:
    """What is known of the release of `package`."""
    value = versions.get(package)
    return parse(value.value) if value is not None and isinstance(value.value, str) else Release()


def by_release(
    draft: Draft, path: str, package: str, *steps: tuple[str, object], unit: str = "", unless: str = ""
) -> None:
    """Put a default that changed over releases: (first release, value), the oldest with an empty release.

    One possible value is put as the default, several as `possible`, each with the releases it holds for. A value of
    None stands for no default: nothing is put where that is the only one, and it drops out of several. `unless` is
    added to the note.
    """
    options: list[tuple[object, str]] = []
    known = release(draft.versions, package)
    for at, (first, value) in enumerate(steps):
        until = steps[at + 1][0] if at + 1 < len(steps) else ""
        if first and known.since(first) is False:
            continue
        if until and known.since(until) is True:
            continue
        options.append((value, holds(package, first, until) + unless))
    spoken = [(value, note) for value, note in options if value is not None]
    if len(options) == 1 and spoken:
        draft.default(path, spoken[0][0], spoken[0][1], unit)
    elif len(spoken) == len(options) > 1:
        draft.either(path, *spoken)


def holds(package: str, first: str, until: str) -> str:
    """The releases of a default as notes name them: `transformers >=4.46,<5`."""
    bounds = ",".join(part for part in (f">={first}" if first else "", f"<{until}" if until else "") if part)
    return f"{package} {bounds}".strip()
