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

PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12} | {
    f"{letter}i": 2.0 ** (10 * power) for power, letter in enumerate("KMGT", 1)
}
"""Of bytes, as in `units.txt`."""

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
    number = float(found[1].replace("_", ""))
    factor = _factor(found[2], unit)
    if factor is not None:
        return _finite(number * factor, text)
    import pint

    try:
        converted = registry().Quantity(number, found[2]).to(unit)
    except pint.UndefinedUnitError:
        example = ": bytes are written `GB` or `GiB`" if unit == "byte" else ""
        raise UnitError(f"`{found[2]}` is no unit that trainlint knows{example}") from None
    except pint.DimensionalityError:
        raise UnitError(f"`{text}` is not a number of {unit}s") from None
    return _finite(float(converted.magnitude), text)


def _factor(written: str, unit: str) -> float | None:
    """What most people write, without pint: the unit by its own name, and bytes with a prefix."""
    if written in (unit, unit + "s"):
        return 1.0
    return PREFIXES.get(written[:-1]) if unit == "byte" and written.endswith("B") else None


def _finite(number: float, text: str) -> float:
    if abs(number) > 1e300:
        raise UnitError(f"`{text}` is too large a number")
    return number


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
