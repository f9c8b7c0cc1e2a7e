"""A value and where it came from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from trainlint.documents import Place

if TYPE_CHECKING:
    from pint import Quantity

T = TypeVar("T")
Origin = Literal["written", "default", "derived", "assumed"]


@dataclass(frozen=True, slots=True)
class Value(Generic[T]):
    """One value of a run, with its place, its raw text and its origin.

    Origins: *written* in a file, the framework's *default* (`note` names framework and version), *derived* from other
    values (`note` says from which), *assumed* by trainlint (`note` says what, and messages repeat it). What is not
    known is no Value but None. `value` is a plain number in `unit`; `quantity` is the same with its unit.
    """

    value: T
    origin: Origin = "written"
    key: str = ""
    place: Place | None = None
    raw: str = ""
    unit: str = ""
    note: str = ""
    file_format: str = ""
    losers: tuple[Value[T], ...] = ()

    @property
    def quantity(self) -> Quantity[Any]:
        """The value as a pint quantity; raises TypeError where the path has no unit."""
        from trainlint.units import quantity

        if not self.unit or not isinstance(self.value, int | float):
            raise TypeError(f"`{self.key or self.value}` has no unit")
        return quantity(self.value, self.unit)

    @property
    def written(self) -> bool:
        """Whether the user wrote it, in any file."""
        return self.origin == "written"

    def beside(self, *losers: Value[T]) -> Value[T]:
        """This value as the winner over others that disagree with it."""
        return replace(self, losers=(*self.losers, *losers))


def known(value: Value[T] | None, default: T | None = None) -> T | None:
    """The bare value, or `default` where nothing is known."""
    return default if value is None else value.value
