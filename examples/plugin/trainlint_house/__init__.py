"""The house rules of a team."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from trainlint.api import Result, hookimpl
from trainlint_house.markdown import markdown


@hookimpl
def trainlint_rules() -> Iterable[Path]:
    """The folder of the rules, a folder a family."""
    return [Path(__file__).parent]


@hookimpl
def trainlint_reports() -> Mapping[str, Callable[[Result], str]]:
    """Output formats by the name that `--output-format` takes."""
    return {"markdown": markdown}
