"""The rules that come with trainlint: a plugin like anybody's, seeing only `trainlint.api`."""

from collections.abc import Iterable
from pathlib import Path

from trainlint.api import hookimpl


@hookimpl
def trainlint_rules() -> Iterable[Path]:
    """The folder of the built-in rules, a folder a family."""
    return [Path(__file__).parent]
