"""The rules that are loaded: from the folders that plugins and settings name, without a list to keep.

`<folder>/<family>/<name>.py` and `<name>.rule.yaml` are rules; the family is the folder, the name the file.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from trainlint.declarative import load
from trainlint.documents import Place, read
from trainlint.rule import NAME, Rule, RuleError, RuleSpec
from trainlint.run import path_info

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
    for need in spec.needs:
        if need != "memory" and path_info(need) is None:
            raise RuleError(f"`needs` names `{need}`, which no run has", Place(str(path)))
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
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        line, column = error.lineno or 1, error.offset or 1
        raise RuleError(error.msg, Place(str(path), line, column, line, column + 1)) from None
    except ImportError as error:
        raise RuleError(str(error), Place(str(path))) from None
    rules = [value for value in vars(module).values() if isinstance(value, RuleSpec)]
    if len(rules) != 1:
        raise RuleError(f"a rule's module has one function under `@rule`, here are {len(rules)}", Place(str(path)))
    return rules[0]


def selected(name: str, family: str, selectors: Iterable[str]) -> bool:
    """Whether one of the selectors names the rule: its name, its family, or a glob (`memory-*`, `ALL`)."""
    return any(_closeness(name, family, selector) for selector in selectors)


def enabled(name: str, family: str, select: Iterable[str], ignore: Iterable[str]) -> bool:
    """Whether a rule is asked for: where both lists name it the closer one counts, name over glob over family."""
    wanted = max((_closeness(name, family, selector) for selector in select), default=0)
    return wanted > 0 and wanted > max((_closeness(name, family, selector) for selector in ignore), default=0)


def unknown(selector: str, rules: Mapping[str, str]) -> str:
    """What is wrong with a selector, empty if it names something. `rules`: the family of every rule by name."""
    if any(_closeness(name, family, selector) for name, family in rules.items()):
        return ""
    from difflib import get_close_matches

    close = get_close_matches(selector, (*rules, *sorted({*rules.values()})), 1)
    hint = f", did you mean `{close[0]}`" if close else ""
    return f"no rule or family {'matches' if '*' in selector else 'is named'} `{selector}`{hint}"


def _closeness(name: str, family: str, selector: str) -> int:
    """How closely a selector names a rule, 0: not at all."""
    if selector == name:
        return 4
    if selector == family:
        return 2
    if selector == "ALL":
        return 1
    return 3 if "*" in selector and fnmatchcase(name, selector) else 0
