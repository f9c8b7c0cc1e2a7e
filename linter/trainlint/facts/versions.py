"""Versions and ranges of them, as requirements write them.

`packaging` would do, and takes 25 to 30 ms to import; what is needed here is an order and a handful of operators.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

VERSION = re.compile(
    r"v?(?P<release>\d+(?:\.\d+)*)[-_.]?(?P<phase>a|b|rc|alpha|beta|c|post|dev)?[-_.]?(?P<number>\d*)"
    r"(?:\.?dev\d*)?(?:\+[\w.]+)?"
)
PHASES = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "rc": -1, "c": -1, "post": 1}
CLAUSE = re.compile(r"\s*(===|==|~=|!=|>=|<=|>|<|=|\^|~|)\s*([\w.+*-]+)\s*")


@dataclass(frozen=True, order=True)
class Version:
    """A version, ordered as PEP 440 orders releases, pre-releases and post-releases; local labels do not count."""

    release: tuple[int, ...]
    phase: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        names = {-4: ".dev", -3: "a", -2: "b", -1: "rc", 0: "", 1: ".post"}
        return ".".join(map(str, self.release)) + (f"{names[self.phase[0]]}{self.phase[1]}" if self.phase[0] else "")

    @property
    def minor(self) -> tuple[int, ...]:
        """The line of releases it belongs to: (4, 41)."""
        return (*self.release, 0)[:2]


@cache
def version(text: str) -> Version | None:
    """The version a text writes, trailing zeros dropped; None when it writes none."""
    found = VERSION.fullmatch(text.strip().lower())
    if found is None:
        return None
    release = [int(part) for part in found["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    phase = (PHASES[found["phase"]], int(found["number"] or 0)) if found["phase"] else (0, 0)
    return Version(tuple(release), phase)


@dataclass(frozen=True)
class VersionRange:
    """All versions that meet every clause: `==4.41.2`, `>=4.46,<5`; no clause is any version.

    `text` is what was written. Each clause is an operator of `== != >= <= > <` and a version.
    """

    text: str
    clauses: tuple[tuple[str, Version], ...] = ()

    def __contains__(self, item: Version) -> bool:
        return all(_meets(item, operator, bound) for operator, bound in self.clauses)

    @property
    def pinned(self) -> Version | None:
        """The only version there is, when one is pinned."""
        return next((bound for operator, bound in self.clauses if operator == "=="), None)

    @property
    def lowest(self) -> Version | None:
        """The greatest lower bound that is written."""
        return max((bound for operator, bound in self.clauses if operator in ("==", ">=", ">")), default=None)

    @property
    def highest(self) -> Version | None:
        """The least upper bound that is written."""
        return min((bound for operator, bound in self.clauses if operator in ("==", "<=", "<")), default=None)

    def among(self, releases: Sequence[str]) -> tuple[str, ...]:
        """The releases, of some in ascending order with about one a minor version, that the range may mean.

        Those inside, and those that stand for an end of the range: the one of the same minor version. Never empty.
        """
        return _among(self, tuple(releases))


@cache
def _among(wanted: VersionRange, releases: tuple[str, ...]) -> tuple[str, ...]:
    inside = {text for text in releases if (release := version(text)) and release in wanted}
    ends = [bound for operator, bound in wanted.clauses if operator in ("==", ">=", "<=")]
    if not inside and not ends:
        ends = [bound for operator, bound in wanted.clauses if operator in ("<", ">")]
    inside.update(_standing_for(end, releases) for end in ends)
    return tuple(text for text in releases if text in inside) or releases[-1:]


def _standing_for(wanted: Version, releases: tuple[str, ...]) -> str:
    known = [(release, text) for text in releases if (release := version(text))]
    line = [pair for pair in known if pair[0].minor == wanted.minor]
    older = [pair for pair in known if pair[0] <= wanted]
    if line:
        return max([pair for pair in line if pair[0] <= wanted], default=min(line))[1]
    return older[-1][1] if older else known[0][1]


def _meets(item: Version, operator: str, bound: Version) -> bool:
    match operator:
        case "==":
            return item == bound
        case "!=":
            return item != bound
        case ">=":
            return item >= bound
        case "<=":
            return item <= bound
        case ">":
            return item > bound
        case _:
            return item < bound


def _next(bound: Version, place: int) -> Version:
    """The first version after all that share the first `place` parts."""
    parts = (*bound.release, 0, 0, 0)[:place]
    return Version((*parts[:-1], parts[-1] + 1))


def _clauses(operator: str, text: str) -> tuple[tuple[str, Version], ...] | None:
    stem = text.removesuffix(".*")
    bound = version(stem)
    if bound is None:
        return () if text == "*" else None
    written = stem.count(".") + 1
    match operator:
        case "^":
            place = next((i for i, part in enumerate(bound.release, 1) if part), 1)
            return (">=", bound), ("<", _next(bound, place))
        case "~":
            return (">=", bound), ("<", _next(bound, min(2, written)))
        case "~=":
            return (">=", bound), ("<", _next(bound, max(1, written - 1)))
        case "" | "==" | "=" if text != stem or (operator == "" and written < 3):  # "4.41.*", and "4.57": the 4.57 line
            return (">=", bound), ("<", _next(bound, written))
        case "" | "=" | "===":
            return (("==", bound),)
        case _:
            return ((operator, bound),)


@cache
def parse(text: str) -> VersionRange | None:
    """The range a requirement writes: `==4.41.2`, `>=4.46,<5`, `~=4.4`, `4.41.*`, `^4.40`, `4.57` (that line of
    releases), `4.57.1`; None when it cannot be read, as for a URL.
    """
    clauses: list[tuple[str, Version]] = []
    for part in filter(None, re.split(r"\s*,\s*|(?<=\d)\s+(?=[<>=!~^])", text.strip())):
        found = CLAUSE.fullmatch(part)
        read = _clauses(found[1], found[2]) if found else None
        if read is None:
            return None
        clauses += read
    return VersionRange(text.strip(), tuple(clauses))


def contains(spec: str, text: str) -> bool:
    """Whether the version `text` is in the range `spec`; false if it is no version. ValueError: `spec` is no range."""
    wanted = parse(spec)
    if wanted is None:
        raise ValueError(f"`{spec}` is no range of versions")
    item = version(text.strip().removeprefix("===").removeprefix("==").strip())
    return item is not None and item in wanted
