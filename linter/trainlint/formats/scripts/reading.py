"""What rules ask of a training script: its calls, its assignments, and which calls make up the training."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from trainlint.formats.fragment import Fragment

if TYPE_CHECKING:
    from trainlint.formats.scripts.calls import Assignment, Call
    from trainlint.formats.scripts.setup import Setup


def calls_of(fragment: Fragment, *names: str) -> tuple[Call, ...]:
    """The calls of a script in order whose last part is one of the names, all without names; none of other files."""
    calls = cast("tuple[Call, ...]", fragment.facts.get("calls", ()))
    return tuple(call for call in calls if not names or call.short in names)


def assignments_of(fragment: Fragment) -> tuple[Assignment, ...]:
    """The assignments to attributes of a script in order; none of other files."""
    return cast("tuple[Assignment, ...]", fragment.facts.get("assignments", ()))


def setup_of(fragment: Fragment) -> Setup | None:
    """The calls of a script that make up the training, or None where it is no script."""
    return cast("Setup | None", fragment.facts.get("setup"))
