"""Unit-aware quantities, from a small pint registry of our own (`units.txt`).

Inside the run a quantity is a number in its path's unit; here it becomes a pint quantity and back. pint is imported
when the first quantity is needed: that costs more than linting a file that has none.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pint import Quantity, UnitRegistry

GIB = 1 << 30
"""Bytes of one GiB, the unit of what is printed."""

_WRITTEN = re.compile(r"\s*([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z]+)\s*")


class UnitError(ValueError):
    """A text that is no quantity of the unit asked for."""


@lru_cache(maxsize=1)
def registry() -> UnitRegistry[Any]:
    """The registry that all quantities of a process share."""
    from pint import UnitRegistry

    return UnitRegistry(str(Path(__file__).with_name("units.txt")), cache_folder=None, autoconvert_to_preferred=False)


def quantity(number: float, unit: str) -> Quantity[Any]:
    """A number of a unit as a pint quantity."""
    made: Quantity[Any] = registry().Quantity(number, unit)
    return made


@lru_cache(maxsize=1024)
def parse(text: str, unit: str) -> float:
    """What a written quantity is in `unit`: `parse("24 GiB", "byte")`.

    Raises UnitError for a bare number, an unknown unit, or one of another dimension.
    """
    found = _WRITTEN.fullmatch(text)
    if found is None:
        example = " (write it like `24 GiB`)" if unit == "byte" else ""
        raise UnitError(f"`{text}` has no unit{example}")
    import pint

    number = float(found[1].replace("_", ""))
    try:
        converted = registry().Quantity(number, found[2]).to(unit)
    except pint.UndefinedUnitError:
        raise UnitError(f"`{found[2]}` is no unit that trainlint knows") from None
    except pint.DimensionalityError:
        raise UnitError(f"`{text}` is not a number of {unit}s") from None
    return float(converted.magnitude)


def compatible(unit: str, other: str) -> bool:
    """Whether two units measure the same thing."""
    if unit == other:
        return True
    if not unit or not other:
        return False
    try:
        return bool(registry().Unit(unit).is_compatible_with(registry().Unit(other)))
    except Exception as error:  # pint raises several kinds for a name it does not know
        raise UnitError(str(error)) from None


def gib(count: float) -> str:
    """Bytes as people read them: `31.2 GiB`, `512 MiB`."""
    if abs(count) >= GIB / 2:
        return f"{count / GIB:.1f} GiB"
    return f"{count / (1 << 20):.0f} MiB"
