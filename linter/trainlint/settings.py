"""Settings: `trainlint.toml`, or `[tool.trainlint]` in `pyproject.toml`, nearest above the file that is linted.

The words are those of the run's vocabulary in kebab case; quantities carry their unit (`device-memory = "24 GiB"`).
`[[overrides]]` with `paths` sets any of them for part of the tree; later overrides win.
"""

from __future__ import annotations

import os
from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Literal, cast

from trainlint.documents import Entry, Mapping, Node, Place, Scalar, Sequence, read
from trainlint.errors import TrainlintError
from trainlint.rule import SEVERITIES, Severity
from trainlint.run import Value

Profile = Literal["default", "strict", "teaching"]
PROFILES: tuple[Profile, ...] = ("default", "strict", "teaching")
FILE = "trainlint.toml"
NAMES = (
    "device", "devices", "device-memory", "host-memory", "profile", "versions", "data", "select", "ignore", "severity",
    "fail-on", "rule-paths", "exclude", "overrides",
)  # fmt: skip
"""What a settings file may say."""
WHOLE = ("rule-paths", "exclude", "overrides")
"""What no part of a tree can say for itself."""
PERCENTILES = ("p50", "p90", "p95", "max")
"""Lengths of samples that a run's vocabulary has."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a project says about its runs and about the linter. Values of runs keep the place they were read from.

    `selectors` are the names of rules that are written anywhere in the file, to be checked once the rules are known.
    """

    device: Value[str] | None = None
    devices: Value[int] | None = None
    device_memory: Value[int] | None = None
    host_memory: Value[int] | None = None
    profile: Profile = "default"
    versions: AnyMapping[str, Value[str]] = field(default_factory=dict)
    rows: Value[int] | None = None
    tokens: AnyMapping[str, Value[int]] = field(default_factory=dict)
    select: tuple[str, ...] = ("ALL",)
    ignore: tuple[str, ...] = ()
    severity: AnyMapping[str, Severity] = field(default_factory=dict)
    fail_on: Severity = "warning"
    rule_paths: tuple[Path, ...] = ()
    selectors: tuple[tuple[str, Place], ...] = ()
    exclude: tuple[str, ...] = ()
    overrides: tuple[tuple[tuple[str, ...], Settings], ...] = ()
    given: frozenset[str] = frozenset()
    root: Path | None = None
    file: str = ""

    def over(self, other: Settings) -> Settings:
        """These settings, with all that `other` gives in place of their own; tables are joined entry by entry.

        A device that `other` names is another one: the memory stated for the old one goes.
        """
        given = {name: getattr(other, name) for name in other.given}
        for name in given.keys() & {"severity", "versions", "tokens"}:
            given[name] = {**getattr(self, name), **given[name]}
        if "device" in given:
            given.setdefault("device_memory", None)
        return replace(self, **given, given=self.given | other.given)

    def told(self, asked: Settings) -> Settings:
        """These settings under what the command line says: its `--ignore` adds, unless it has a `--select`."""
        merged = self.over(asked)
        if "select" in asked.given and "ignore" not in asked.given:
            return replace(merged, ignore=())
        if "ignore" in asked.given and "select" not in asked.given:
            return replace(merged, ignore=(*self.ignore, *asked.ignore))
        return merged

    def at(self, path: Path) -> Settings:
        """The settings for one file: the overrides whose globs name it, applied in order."""
        merged = self
        if self.overrides and self.root is not None:
            try:
                relative = Path(os.path.realpath(path)).relative_to(os.path.realpath(self.root)).as_posix()
            except ValueError:
                relative = path.as_posix()
            for globs, override in self.overrides:
                if any(matches(relative, glob) for glob in globs):
                    merged = merged.over(override)
        return merged


def matches(relative: str, glob: str) -> bool:
    """Whether a path relative to the settings file is named by a glob; `**` crosses folders, a folder its tree."""
    glob = glob.strip("/")
    return (
        fnmatchcase(relative, glob)
        or fnmatchcase(relative, glob + "/*")
        or (glob.startswith("**/") and matches(relative, glob[3:]))
        or ("/" not in glob and any(fnmatchcase(part, glob) for part in relative.split("/")))
    )


@lru_cache(maxsize=4096)
def nearest(folder: Path) -> Settings:
    """The settings that hold in a folder: the first file found on the way up, else the defaults."""
    for name in (FILE, "pyproject.toml"):
        path = folder / name
        if os.path.isfile(path):
            found = load(path, required=name == FILE)
            if found is not None:
                return found
    return nearest(folder.parent) if folder.parent != folder else Settings()


def load(path: Path, required: bool = True) -> Settings | None:
    """Settings from one file; None where a `pyproject.toml` has no `[tool.trainlint]`. Raises TrainlintError."""
    document = read(str(path), _shown(path))
    for problem in document.problems:
        if path.name == "pyproject.toml" and not required:
            return None
        raise TrainlintError(problem.message, problem.place)
    root = document.roots[0] if document.roots else None
    if isinstance(root, Mapping) and path.name == "pyproject.toml":
        root = root.find("tool.trainlint")
        if root is None and not required:
            return None
    if not isinstance(root, Mapping):
        raise TrainlintError("no settings here", Place(document.file))
    return _Reader(path).settings(root, document.file)


def _shown(path: Path) -> str:
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)


class _Reader:
    """Turns the tree of a settings file into Settings, with the place of whatever does not fit."""

    def __init__(self, path: Path) -> None:
        self.folder = path.parent
        self.selectors: list[tuple[str, Place]] = []

    def settings(self, root: Mapping, file: str, nested: bool = False) -> Settings:
        given: dict[str, object] = {}
        for entry in root.entries:
            name, node = entry.name, entry.value
            if nested and name == "paths":
                continue
            if nested and name in WHOLE:
                raise TrainlintError(f"`{name}` is for the whole tree: write it above `[[overrides]]`", entry.key.place)
            match name:
                case "device":
                    given["device"] = self.value(name, node, str)
                    wrong = "" if "device-memory" in root else unknown_device(self.text(name, node))
                    if wrong:
                        raise TrainlintError(f"{wrong}; with `device-memory` any name will do", node.place)
                case "devices":
                    given["devices"] = self.value(name, node, int)
                case "device-memory" | "host-memory":
                    given[name.replace("-", "_")] = self.bytes(name, node)
                case "profile":
                    given["profile"] = self.word(name, node, PROFILES)
                case "versions":
                    given["versions"] = {
                        below.name.lower().replace("_", "-"): self.version(f"versions.{below.name}", below.value)
                        for below in self.table(name, node).entries
                    }
                case "data":
                    given.update(self.data(self.table(name, node)))
                case "select" | "ignore":
                    given[name] = self.texts(name, node)
                    items = node.items if isinstance(node, Sequence) else ()
                    self.selectors += [(self.text(name, item), item.place) for item in items]
                case "exclude":
                    given[name] = self.texts(name, node)
                case "severity":
                    self.selectors += [(below.name, below.key.place) for below in self.table(name, node).entries]
                    given["severity"] = {
                        below.name: self.word(below.name, below.value, SEVERITIES)
                        for below in self.table(name, node).entries
                    }
                case "fail-on":
                    given["fail_on"] = self.word(name, node, SEVERITIES)
                case "rule-paths":
                    given["rule_paths"] = self.folders(node)
                case "overrides":
                    given["overrides"] = self.overrides(node, file)
                case _:
                    raise TrainlintError(f"no setting is named `{name}`{_close(name)}", entry.key.place)
        known = cast(AnyMapping[str, object], given)
        return Settings(
            **known,  # type: ignore[arg-type]
            given=frozenset(given),
            root=self.folder,
            file=file,
            selectors=() if nested else tuple(self.selectors),
        )

    def overrides(self, node: Node, file: str) -> tuple[tuple[tuple[str, ...], Settings], ...]:
        if not isinstance(node, Sequence):
            raise TrainlintError("`overrides` is a list of tables: write `[[overrides]]`", node.place)
        made = []
        for item in node.items:
            table = self.table("overrides", item)
            paths = table.get("paths")
            if paths is None:
                raise TrainlintError("an override needs `paths`", table.place)
            made.append((self.texts("paths", paths), self.settings(table, file, nested=True)))
        return tuple(made)

    def data(self, table: Mapping) -> dict[str, object]:
        made: dict[str, object] = {}
        for entry in table.entries:
            if entry.name == "rows":
                made["rows"] = self.value("data.rows", entry.value, int, "sample")
            elif entry.name == "tokens":
                made["tokens"] = {
                    self.percentile(below): self.value(f"data.tokens.{below.name}", below.value, int, "token")
                    for below in self.table("tokens", entry.value).entries
                }
            else:
                raise TrainlintError(f"`data` has no `{entry.name}`: there are rows, tokens", entry.key.place)
        return made

    def percentile(self, entry: Entry) -> str:
        if entry.name not in PERCENTILES:
            raise TrainlintError(f"`tokens` has no `{entry.name}`: there are {', '.join(PERCENTILES)}", entry.key.place)
        return entry.name

    def value(self, name: str, node: Node, kind: type, unit: str = "") -> Value[object]:
        found = node.value if isinstance(node, Scalar) else None
        if isinstance(node, Scalar) and type(found) is kind and (kind is str or cast(int, found) > 0):
            return Value(found, "written", name, node.place, node.raw, unit, file_format="settings")
        word = {str: "a text in quotes", int: "a whole number above 0"}[kind]
        raw = f", not `{node.raw}`" if isinstance(node, Scalar) else ""
        raise TrainlintError(f"`{name}` is {word}{raw}", node.place)

    def version(self, name: str, node: Node) -> Value[object]:
        from trainlint.facts.versions import parse

        value = self.value(name, node, str)
        if not str(value.value).strip() or parse(str(value.value)) is None:
            raise TrainlintError(f"`{name}` is a version or a range like `>=4.46,<5`, not `{value.value}`", node.place)
        return value

    def bytes(self, name: str, node: Node) -> Value[object]:
        from trainlint.units import UnitError, parse

        try:
            size = parse(self.text(name, node), "byte")
            if size <= 0:
                raise UnitError("a memory is more than nothing")
        except UnitError as error:
            raise TrainlintError(f"`{name}`: {error}", node.place) from None
        raw = node.raw if isinstance(node, Scalar) else ""
        return Value(int(size), "written", name, node.place, raw, "byte", file_format="settings")

    def text(self, name: str, node: Node) -> str:
        if isinstance(node, Scalar) and isinstance(node.value, str):
            return node.value
        raw = f", not `{node.raw}`" if isinstance(node, Scalar) else ""
        raise TrainlintError(f"`{name}` is a text in quotes{raw}", node.place)

    def word(self, name: str, node: Node, words: tuple[str, ...]) -> str:
        text = self.text(name, node)
        if text not in words:
            raise TrainlintError(f"`{name}` is one of {', '.join(words)}, not `{text}`", node.place)
        return text

    def texts(self, name: str, node: Node) -> tuple[str, ...]:
        if not isinstance(node, Sequence):
            raise TrainlintError(f"`{name}` is a list of texts", node.place)
        return tuple(self.text(name, item) for item in node.items)

    def folders(self, node: Node) -> tuple[Path, ...]:
        paths = tuple(self.folder / text for text in self.texts("rule-paths", node))
        for path in paths:
            if not path.is_dir():
                raise TrainlintError(f"no folder {path.name} for `rule-paths`", node.place)
        return paths

    def table(self, name: str, node: Node) -> Mapping:
        if isinstance(node, Mapping):
            return node
        raise TrainlintError(f"`{name}` is a table", node.place)


def unknown_device(name: str) -> str:
    """Why nothing can be said of a device of that name, empty if something can: it must not go unjudged in silence."""
    from trainlint.facts import devices

    if name.lower() == "cpu" or devices.match(name) is not None:
        return ""
    close = " or ".join(f"`{word}`" for word in devices.nearest(name))
    return f"no device is named `{name}`" + (f", did you mean {close}" if close else "")


def _close(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, NAMES, 1)
    return f", did you mean `{close[0]}`" if close else ""
