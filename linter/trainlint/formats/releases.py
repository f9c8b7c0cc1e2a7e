"""Which release of a package a run uses, as far as pins and specifiers say."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainlint.formats.format import Draft

_CLAUSE = re.compile(r"\s*(===|==|~=|>=|<=|!=|>|<)?\s*v?(\d+(?:\.\d+)*)(\.\*)?")


def at_least(draft: Draft, package: str, release: str) -> bool | None:
    """Whether the package is of that release or later; None where no pin or specifier decides.

    `4.41.2` and `==4.41.2` are pins, `>=4.46,<5` bounds, `~=4.46` and `==4.46.*` both. Pre-releases count as their
    release.
    """
    value = draft.versions.get(package)
    if value is None:
        return None
    wanted = _numbers(release)
    for clause in str(value.value).split(","):
        found = _CLAUSE.match(clause)
        if found is None:
            continue
        sign, version = found[1] or "==", _numbers(found[2])
        parts = tuple(int(part) for part in found[2].split("."))
        if sign in ("==", "===", "~="):
            if version >= wanted:
                return True
            series = parts[:-1] if sign == "~=" else parts if found[3] else None
            if series is None or _above(series) <= wanted:
                return False
        elif sign in (">=", ">") and version >= wanted:
            return True
        elif (sign == "<" and version <= wanted) or (sign == "<=" and version < wanted):
            return False
    return None


def since(
    draft: Draft, path: str, package: str, history: Sequence[tuple[str, object]], origin: str = "default"
) -> None:
    """Put a default that changed: `history` lists (first release, value), the oldest first.

    Where the release is not known, the values it may have become are all kept as possible.
    """
    left: list[tuple[object, str]] = []
    for at in range(len(history) - 1, -1, -1):
        release, value = history[at]
        here = at_least(draft, package, release) if at else True
        before = history[at + 1][0] if at + 1 < len(history) else ""
        words = f">={release}" if at else ""
        note = " ".join((package, ",".join(filter(None, (words, f"<{before}" if before else ""))))).strip()
        if here is True:
            left.append((value, note))
            break
        if here is None:
            left.append((value, note))
    if len(left) == 1:
        draft.put(path, left[0][0], origin, left[0][1])
    else:
        draft.either(path, *left, origin=origin)


def _numbers(version: str) -> tuple[int, ...]:
    numbers = [int(part) for part in version.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _above(series: tuple[int, ...]) -> tuple[int, ...]:
    """The first release past a series: 4.46.* ends at 4.47."""
    return (*series[:-1], series[-1] + 1) if series else ()
