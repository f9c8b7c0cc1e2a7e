"""How conditions compare: the operators of declarative rules, and the literals they take."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from trainlint.documents import Entry, Place, plain
from trainlint.rule import RuleError
from trainlint.run import PathInfo
from trainlint.units import UnitError, parse

if TYPE_CHECKING:
    from trainlint.facts.versions import Version, VersionRange

Comparison = Callable[[object, object], bool]


def _number(value: object) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _order(compare: Callable[[float, float], bool]) -> Comparison:
    def ordered(left: object, right: object) -> bool:
        first, second = _number(left), _number(right)
        return first is not None and second is not None and compare(first, second)

    return ordered


def _same(left: object, right: object) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return left == right


def _version(left: object, right: object) -> bool:
    """Whether every version that `left` (a pin or a range) allows is in the range `right`."""
    from trainlint.facts.versions import parse

    allowed, wanted = parse(str(left)), parse(str(right))
    if allowed is None or wanted is None:
        return False
    if allowed.pinned is not None:
        return allowed.pinned in wanted
    return all(_implied(allowed, operator, bound) for operator, bound in wanted.clauses)


def _implied(allowed: VersionRange, operator: str, bound: Version) -> bool:
    """Whether all versions of a range are on one side of a bound."""
    end = allowed.lowest if operator in (">=", ">") else allowed.highest
    match operator:
        case ">=":
            return end is not None and end >= bound
        case "<=":
            return end is not None and end <= bound
        case ">":
            return end is not None and (end > bound or (end == bound and bound not in allowed))
        case "<":
            return end is not None and (end < bound or (end == bound and bound not in allowed))
        case "!=":
            return bound not in allowed
        case _:
            return False


OPERATORS: dict[str, Comparison] = {
    "is": _same,
    "is-not": lambda left, right: not _same(left, right),
    "in": lambda left, right: isinstance(right, list) and any(_same(left, item) for item in right),
    "not-in": lambda left, right: isinstance(right, list) and not any(_same(left, item) for item in right),
    "above": _order(lambda left, right: left > right),
    "at-least": _order(lambda left, right: left >= right),
    "below": _order(lambda left, right: left < right),
    "at-most": _order(lambda left, right: left <= right),
    "matches": lambda left, right: isinstance(left, str) and re.fullmatch(str(right), left) is not None,
    "version": _version,
}
ORDERED = ("above", "at-least", "below", "at-most")


def literal(name: str, info: PathInfo | None, is_key: bool, entry: Entry) -> object:
    """What a path or key is compared with, checked against the operator and the path; quantities in the path's unit."""
    value, place, operator = plain(entry.value), entry.value.place, entry.name
    if operator in ("in", "not-in"):
        if not isinstance(value, list):
            raise RuleError(f"`{operator}` takes a list", place)
        return [_fitting(name, info, item, place) for item in value]
    if operator == "matches":
        try:
            return re.compile(str(value)).pattern
        except re.error as error:
            raise RuleError(f"`{value}` is no regular expression: {error}", place) from None
    if operator == "version":
        from trainlint.facts.versions import parse as range_of

        if range_of(str(value)) is None or not (is_key or name.startswith("versions.")):
            raise RuleError(f"`version` compares `versions.…` with a range like `>=4.46`, not `{value}`", place)
        return value
    if operator in ORDERED and info and info.kind not in ("count", "number"):
        raise RuleError(f"`{name}` is no number", place)
    if operator in ORDERED and not info and _number(value) is None:
        raise RuleError(f"`{operator}` compares with a number, not `{value}`", place)
    return _fitting(name, info, value, place)


def _fitting(name: str, info: PathInfo | None, value: object, place: Place) -> object:
    """A literal as a value of the path. Raises RuleError for one that the path can never have."""
    if info is None:
        return value
    if info.choices and value not in info.choices:
        raise RuleError(f"`{name}` is one of {', '.join(info.choices)}, not `{value}`", place)
    match info.kind:
        case "count" | "number":
            if isinstance(value, str) and info.unit:
                try:
                    return parse(value, info.unit)
                except UnitError as error:
                    raise RuleError(f"`{name}`: {error}", place) from None
            if isinstance(value, str) and _number(value) is not None:  # YAML 1.1 leaves `1e-5` a string
                return _number(value)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise RuleError(f"`{name}` is a number of {info.unit or 'nothing'}, not `{value}`", place)
            if info.unit == "byte" and value:
                raise RuleError(f"`{name}`: `{value}` has no unit (write it like `24 GiB`)", place)
        case "flag" if not isinstance(value, bool):
            raise RuleError(f"`{name}` is true or false, not `{value}`", place)
        case "text" if not isinstance(value, str):
            raise RuleError(f"`{name}` is a text, not `{value}`", place)
        case "texts" if isinstance(value, str):
            return [value]
    return value
