"""Results as text that people, forges and other programs read: one module a format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from trainlint.errors import TrainlintError
from trainlint.result import Result
from trainlint.rule import Rule

FORMATS = ("text", "json", "github", "gitlab", "sarif", "junit")
"""What `--output-format` takes; plugins add theirs."""

__all__ = ["FORMATS", "render", "unknown"]


def render(
    name: str,
    result: Result,
    rules: Iterable[Rule] = (),
    *,
    color: bool = False,
    statistics: bool = False,
    verbose: bool = False,
    quiet: bool = False,
    further: Mapping[str, Callable[[Result], str]] | None = None,
) -> str:
    """A result in one of the `FORMATS`, or in one of `further` (name → function) that plugins bring.

    `rules` gives the reports that describe rules their pages. `color`, `statistics`, `verbose` (what was not judged)
    and `quiet` (one line a finding) concern the text report alone. The text ends with a newline unless it is empty.
    Raises TrainlintError for a name that is neither. It is text that UTF-8 can write, whatever the sources hold.
    """
    if name == "text":
        from trainlint.report import text

        said = text.render(result, color=color, statistics=statistics, verbose=verbose, quiet=quiet)
    else:
        said = _for_programs(name, result, rules, further or {})
    return said if said.isascii() else said.encode("utf-8", "replace").decode("utf-8")


def _for_programs(
    name: str, result: Result, rules: Iterable[Rule], further: Mapping[str, Callable[[Result], str]]
) -> str:
    match name:
        case "json":
            from trainlint.report import json

            return json.render(result)
        case "github":
            from trainlint.report import github

            return github.render(result)
        case "gitlab":
            from trainlint.report import gitlab

            return gitlab.render(result)
        case "sarif":
            from trainlint.report import sarif

            return sarif.render(result, rules)
        case "junit":
            from trainlint.report import junit

            return junit.render(result)
    if name in further:
        return further[name](result)
    raise unknown(name, further)


def unknown(name: str, further: Iterable[str] = ()) -> TrainlintError:
    """The error for an output format that nobody offers; it names those there are."""
    return TrainlintError(f"no output format `{name}`, there are: {', '.join((*FORMATS, *sorted(further)))}")
