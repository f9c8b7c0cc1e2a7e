"""The doors through which rules, formats, facts and reports come in: pluggy hooks under the entry point `trainlint`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from trainlint.formats import Format

PROJECT = "trainlint"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class Hooks:
    """What a plugin may offer."""

    @hookspec
    def trainlint_rules(self) -> Iterable[Path]:  # type: ignore[empty-body]
        """Folders of rules: `<family>/<name>.py` or `<name>.rule.yaml`, each beside its `<name>.md`."""

    @hookspec
    def trainlint_formats(self) -> Iterable[Format]:  # type: ignore[empty-body]
        """Further file formats."""

    @hookspec
    def trainlint_facts(self) -> Mapping[str, Path]:  # type: ignore[empty-body]
        """Further facts: `devices` or `models` → a JSON file in the form of the built-in one."""

    @hookspec
    def trainlint_reports(self) -> Mapping[str, Callable[..., str]]:  # type: ignore[empty-body]
        """Further output formats by name: a function from a Result to text."""


Manager = pluggy.PluginManager


def load() -> pluggy.PluginManager:
    """The plugin manager with everything installed. The built-in rules come in here too, like anybody's."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(Hooks)
    manager.load_setuptools_entrypoints(PROJECT)
    return manager


def offered(manager: pluggy.PluginManager, hook: str) -> list[Any]:
    """All that plugins offer under one hook, flattened, first registered first."""
    results = getattr(manager.hook, hook)()
    return [
        item for result in reversed(results) for item in (result.items() if isinstance(result, Mapping) else result)
    ]
