"""Which name was meant: found when one letter is missing, extra, wrong or swapped with its neighbour."""

from __future__ import annotations

from collections.abc import Iterable

SHORTEST = 6
"""Shorter names are too alike to tell."""
ONE_OTHER = 8
"""The length from which another letter in place of one is a slip: `tp_size` and `cp_size` are two names."""


class Slips:
    """Names, found again from a spelling that is one slip away, or that differs in case and dashes alone."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)
        self._alike: dict[tuple[int, str, int], list[str]] = {}
        for name in self.names:
            for end in (0, -1):  # one slip leaves the first letter or the last one
                self._alike.setdefault((end, name[end:][:1], len(name)), []).append(name)

    def meant(self, spelling: str) -> str | None:
        """The name that a spelling stands for; None where it is a name itself, or like none or several."""
        if spelling in self.names:
            return None
        folded = spelling.lower().replace("-", "_")
        if folded in self.names:
            return folded
        if len(folded) < SHORTEST:
            return None
        near = {
            name
            for end in (0, -1)
            for length in (len(folded) - 1, len(folded), len(folded) + 1)
            for name in self._alike.get((end, folded[end], length), ())
            if one_slip(name, folded)
        }
        return near.pop() if len(near) == 1 else None


def one_slip(left: str, right: str) -> bool:
    """Whether two spellings are one missing, extra, other or swapped letter apart."""
    if len(left) > len(right):
        left, right = right, left
    if left == right or len(right) - len(left) > 1:
        return False
    at = next((place for place, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]), len(left))
    if len(left) < len(right):
        return left[at:] == right[at + 1 :]
    swapped = left[at + 1 : at + 2] + left[at : at + 1] + left[at + 2 :]
    return swapped == right[at:] or (len(left) >= ONE_OTHER and left[at + 1 :] == right[at + 1 :])
