"""Hydra's defaults list: the files that a config is composed of, merged beneath it.

`defaults:` names other files of the tree; what they hold is put where their package says, later entries over earlier
ones, the config itself where `_self_` stands (without it on top, as since Hydra 1.1). Every value keeps its place in
the file it comes from. What is not found is told, so that nobody takes the framework's default for the user's.

Source: Hydra 1.3, hydra.cc/docs/advanced/defaults_list, /overriding_packages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from trainlint.documents import Document, Entry, Mapping, Node, Place, Scalar, Sequence, read
from trainlint.formats.fragment import Reference

_PACKAGE = r"(?m)^#\s*@package\s+(\S+)"
_DEPTH, _FILES, _ABOVE = 6, 40, 8
"""How deep lists go, how many files one config takes, how many folders above are looked at."""
SELF = "_self_"


@dataclass(slots=True)
class Composed:
    """A config with what its defaults list names beneath it.

    `references` are the files that were found, `missing` the entries (as written) whose file was not.
    """

    root: Mapping
    references: list[Reference] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def composed(document: Document, root: Mapping) -> Composed:
    """Compose a config that stands in a file; without a defaults list it is what it is."""
    made = Composed(root)
    if isinstance(root.get("defaults"), Sequence):
        folders = [Path(document.file).resolve().parent, *_searched(document, root)]
        made.root = _compose(root, folders, made, _DEPTH)
    return made


def _searched(document: Document, root: Mapping) -> list[Path]:
    """Folders of `hydra.searchpath` that stand in the tree; relative ones start at a folder above the file."""
    node = root.find("hydra.searchpath")
    found = []
    for item in node.items if isinstance(node, Sequence) else ():
        text = item.value if isinstance(item, Scalar) else None
        if not isinstance(text, str) or not text.startswith("file://") or "$" in text:
            continue
        for above in list(Path(document.file).resolve().parents)[:_ABOVE]:
            if (above / text.removeprefix("file://")).is_dir():
                found.append(above / text.removeprefix("file://"))
                break
    return found


def _compose(root: Mapping, folders: list[Path], made: Composed, depth: int) -> Mapping:
    """A config's own content and its defaults, merged in the order of the list."""
    own = Mapping(tuple(entry for entry in root.entries if entry.name != "defaults"), root.place)
    listed = root.get("defaults")
    items = listed.items if isinstance(listed, Sequence) else ()
    merged = Mapping((), root.place)
    placed = False
    for item in items:
        if isinstance(item, Scalar) and item.value == SELF:
            merged, placed = _over(merged, own), True
            continue
        for group, option, package, place in _named(item):
            below = _load(group, option, package, place, folders, made, depth)
            if below is not None:
                merged = _over(merged, below)
    return merged if placed else _over(merged, own)


def _named(item: Node) -> list[tuple[str, str, str | None, Place]]:
    """What one entry of the list names: group, file, package, place."""
    if isinstance(item, Scalar):
        if not isinstance(item.value, str):
            return []
        config, _, package = item.value.partition("@")
        group, _, option = config.rpartition("/")
        return [(group, option, package or None, item.place)]
    if not isinstance(item, Mapping):
        return []
    found = []
    for entry in item.entries:
        words = entry.name.split()
        if "override" in words[:-1] or not words or words[-1].lstrip("/").startswith("hydra/"):
            continue
        group, _, package = words[-1].partition("@")
        nodes = entry.value.items if isinstance(entry.value, Sequence) else (entry.value,)
        options = [node for node in nodes if isinstance(node, Scalar) and isinstance(node.value, str)]
        found += [(group, str(node.value), package or None, node.place) for node in options]
    return found


def _load(
    group: str, option: str, package: str | None, place: Place, folders: list[Path], made: Composed, depth: int
) -> Mapping | None:
    """The content of one entry, put where its package says."""
    name = f"{group.lstrip('/')}/{option}" if group else option
    path = None if "${" in name or depth == 0 else _file(name, folders if not group.startswith("/") else folders[-1:])
    document = read(str(path), _shown(path)) if path is not None and len(made.references) < _FILES else None
    if document is None or not document.roots or not isinstance(document.roots[0], Mapping):
        made.missing.append(name)
        return None
    made.references.append(Reference("config", str(path), place, "defaults"))
    header = re.search(_PACKAGE, document.text[:500])
    package = package if package is not None else header[1] if header else group.replace("../", "").replace("/", ".")
    content = _compose(document.roots[0], [path.parent, *folders] if path else folders, made, depth - 1)
    for key in reversed([key for key in _inner(package, group).split(".") if key]):
        content = Mapping((Entry(Scalar(key, key, content.place), content),), content.place)
    return content


def _inner(package: str, group: str) -> str:
    """The keys that a package stands for: `_global_` none, `_group_` the group's."""
    if package in ("_global_", "_here_"):
        return ""
    return package.replace("_group_", group.strip("/").replace("/", ".")).removeprefix("_global_.")


def _file(name: str, folders: list[Path]) -> Path | None:
    for folder in folders:
        for suffix in ("", ".yaml", ".yml"):
            path = folder / f"{name}{suffix}"
            try:
                if path.suffix in (".yaml", ".yml") and path.is_file():
                    return path.resolve()
            except (OSError, ValueError):
                return None
    return None


def _shown(path: Path | None) -> str:
    try:
        return path.relative_to(Path.cwd()).as_posix() if path is not None else ""
    except ValueError:
        return str(path)


def _over(below: Mapping, above: Mapping) -> Mapping:
    """Two mappings merged key by key; what is `above` wins, lists are replaced."""
    entries = dict(below.index)
    for name, entry in above.index.items():
        under = entries.get(name)
        if under is not None and isinstance(under.value, Mapping) and isinstance(entry.value, Mapping):
            entries[name] = Entry(entry.key, _over(under.value, entry.value))
        else:
            entries[name] = entry
    return Mapping(tuple(entries.values()), above.place)
