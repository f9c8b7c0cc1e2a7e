"""The rules that are loaded: from the folders that plugins and settings name, without a list to keep.

`<folder>/<family>/<name>.py` and `<name>.rule.yaml` are rules; the family is the folder, the name the file. A folder
may hold `headers.json`, which the tests write: what each file says of its rule, with the file's checksum. A file that
it knows is loaded when the rule is first asked; one that is new or was changed is loaded at once.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from zlib import crc32

from trainlint.declarative import load
from trainlint.documents import Place, read
from trainlint.rule import NAME, Found, Rule, RuleError, RuleSpec
from trainlint.run import path_info

ENDING = ".rule.yaml"
HEADERS = "headers.json"
FACTS = tuple(one.name for one in fields(RuleSpec) if one.name != "check")
"""What a rule's file says of it, besides what it checks."""


def collect(folders: Iterable[Path]) -> tuple[Rule, ...]:
    """All rules under some folders, by name. Raises RuleError for one that can not be used, or a name given twice."""
    rules: dict[str, Rule] = {}
    for folder in folders:
        for made in _of_folder(folder):
            if made.name in rules:
                raise RuleError(f"the rule `{made.name}` is also in {rules[made.name].source}", Place(made.source))
            rules[made.name] = made
    return tuple(rules[name] for name in sorted(rules))


def _of_folder(folder: Path) -> Iterator[Rule]:
    known = _headers(folder)
    for path in files(folder):
        said = known.get(f"{path.parent.name}/{path.name}")
        if said is not None and said[0] == crc32(path.read_bytes()):
            facts = zip(FACTS, said[1:], strict=True)
            given: dict[str, Any] = {name: tuple(fact) if isinstance(fact, list) else fact for name, fact in facts}
            spec = RuleSpec(check=Deferred(path), **given)
        else:
            spec = loaded(path)
        yield _rule(path, path.name.removesuffix(ENDING).removesuffix(".py"), path.parent.name, spec)


def files(folder: Path) -> Iterator[Path]:
    """The files that are rules, by family and name."""
    for family in sorted(os.listdir(folder)):
        if family.startswith(("_", ".")) or not os.path.isdir(folder / family):
            continue
        for name in sorted(os.listdir(folder / family)):
            if name.endswith(ENDING) or (name.endswith(".py") and not name.startswith("_")):
                yield folder / family / name


def headers(folder: Path) -> str:
    """The text of a folder's `headers.json`: by file, its checksum and what it says of its rule."""
    lines = []
    for path in files(folder):
        spec = loaded(path)
        said = [crc32(path.read_bytes()), *(getattr(spec, name) for name in FACTS)]
        lines.append(f" {json.dumps(f'{path.parent.name}/{path.name}')}: {json.dumps(said)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _headers(folder: Path) -> dict[str, list[Any]]:
    try:
        text = (folder / HEADERS).read_text("utf-8")
    except OSError:
        return {}
    known: dict[str, list[Any]] = json.loads(text)
    return known


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


@dataclass(slots=True)
class Deferred:
    """The check of a rule whose file is loaded at the first call."""

    path: Path
    spec: list[RuleSpec] = field(default_factory=list)

    def __call__(self, view: object) -> Iterable[Found]:
        """What the rule's own function yields."""
        if not self.spec:
            self.spec.append(loaded(self.path))
        return self.spec[0].check(view)


def loaded(path: Path) -> RuleSpec:
    """A rule from its file. Raises RuleError, with its place, for one that can not be used."""
    return load(read(str(path))) if path.name.endswith(ENDING) else executed(path)


def executed(path: Path) -> RuleSpec:
    """A rule by executing its module. Raises RuleError, with its place, for one that can not be used."""
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
