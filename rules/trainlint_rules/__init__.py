"""The rules that come with trainlint: a plugin like anybody's, seeing only `trainlint.api`."""

from collections.abc import Iterable
from pathlib import Path

from trainlint.api import RuleFolder, hookimpl


@hookimpl
def trainlint_rules() -> Iterable[RuleFolder]:
    """The folder of the built-in rules, a folder a family; the tests run every one of them."""
    return [RuleFolder(Path(__file__).parent, deferred=True)]
