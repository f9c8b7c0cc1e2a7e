"""The doors through which rules, formats, facts and reports come in: pluggy hooks under the entry point `trainlint`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
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
    plugins = declared(sys.path)
    if plugins is None:
        manager.load_setuptools_entrypoints(PROJECT)
        return manager
    for name, module in plugins.items():
        manager.register(import_module(module), name)
    return manager


def declared(folders: Iterable[str]) -> dict[str, str] | None:
    """The modules that installed distributions name under our entry point; None where it takes more to tell.

    Looked up in the `entry_points.txt` of each distribution: to import `importlib.metadata`, which pluggy would use,
    takes an eighth of a whole start. Zipped distributions and entry points into a module are left to it.
    """
    found: dict[str, str] = {}
    for folder in dict.fromkeys(folders):
        try:
            names = os.listdir(folder or ".")
        except NotADirectoryError:
            return None
        except OSError:
            continue
        if folder.endswith(".egg"):
            return None
        for name in names:
            if not name.endswith((".dist-info", ".egg-info")):
                continue
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), encoding="utf-8") as file:
                    text = file.read()
            except OSError:
                continue
            if f"[{PROJECT}]" in text:
                group = text.partition(f"[{PROJECT}]")[2].partition("\n[")[0]
                for line in filter(None, map(str.strip, group.splitlines())):
                    key, _, module = (part.strip() for part in line.partition("="))
                    if not all(part.isidentifier() for part in module.split(".")):
                        return None
                    found.setdefault(key, module)
    return found


def offered(manager: pluggy.PluginManager, hook: str) -> list[Any]:
    """All that plugins offer under one hook, flattened, first registered first."""
    results = getattr(manager.hook, hook)()
    return [
        item for result in reversed(results) for item in (result.items() if isinstance(result, Mapping) else result)
    ]
