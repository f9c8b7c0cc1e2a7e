"""The house rules of a team."""

from collections.abc import Iterable
from pathlib import Path

from trainlint.api import hookimpl


@hookimpl
def trainlint_rules() -> Iterable[Path]:
    """The folder of the rules, a folder a family."""
    return [Path(__file__).parent]
