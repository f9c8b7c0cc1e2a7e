"""The rules that are loaded: from the folders that plugins and settings name, without a list to keep.

`<folder>/<family>/<name>.py` and `<name>.rule.yaml` are rules; the family is the folder, the name the file.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from trainlint.declarative import load
from trainlint.documents import Place, read
from trainlint.rule import NAME, Rule, RuleError, RuleSpec

ENDING = ".rule.yaml"


def collect(folders: Iterable[Path]) -> tuple[Rule, ...]:
    """All rules under some folders, by name. Raises RuleError for one that can not be used, or a name given twice."""
    rules: dict[str, Rule] = {}
    for folder in folders:
        for rule in _of_folder(folder):
            if rule.name in rules:
                raise RuleError(f"the rule `{rule.name}` is also in {rules[rule.name].source}", Place(rule.source))
            rules[rule.name] = rule
    return tuple(rules[name] for name in sorted(rules))


def _of_folder(folder: Path) -> Iterator[Rule]:
    for family in sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(("_", "."))):
        for path in sorted(family.iterdir()):
            if path.name.endswith(ENDING):
                yield _rule(path, path.name.removesuffix(ENDING), family.name, load(read(str(path))))
            elif path.suffix == ".py" and not path.name.startswith("_"):
                yield _rule(path, path.stem, family.name, _python(path))


def loose(folder: Path) -> Iterator[Rule]:
    """The rules of a repository of its own: `*.rule.yaml` anywhere under a folder that the settings name."""
    for path in sorted(folder.rglob("*" + ENDING)):
        name = path.name.removesuffix(ENDING)
        yield _rule(path, name, name.partition("-")[0], load(read(str(path))))


def _rule(path: Path, name: str, family: str, spec: RuleSpec) -> Rule:
    if not NAME.fullmatch(name) or not name.startswith(family + "-"):
        raise RuleError(f"a rule is named `{family}-<mistake>`, not `{name}`", Place(str(path)))
    page = path.with_name(name + ".md")
    return Rule(
        name=name,
        family=family,
        severity=spec.severity,
        check=spec.check,
        on=spec.on,
        needs=spec.needs,
        formats=spec.formats,
        profiles=spec.profiles,
        outranks=spec.outranks,
        page=lambda: page.read_text("utf-8") if page.is_file() else "",
        source=str(path),
    )


def _python(path: Path) -> RuleSpec:
    name = f"trainlint_rules_of.{path.parent.name}.{path.stem.replace('-', '_')}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rules = [value for value in vars(module).values() if isinstance(value, RuleSpec)]
    if len(rules) != 1:
        raise RuleError(f"a rule's module has one function under `@rule`, here are {len(rules)}", Place(str(path)))
    return rules[0]


def selected(name: str, family: str, selectors: Iterable[str]) -> bool:
    """Whether one of the selectors names the rule: its name, its family, or a glob (`memory-*`, `ALL`)."""
    return any(
        selector in (name, family, "ALL") or ("*" in selector and fnmatchcase(name, selector)) for selector in selectors
    )
