"""Arguments on a command line behind the config that it hands to a trainer: they win over what the config says.

`train.py --config sft.yaml --learning_rate 2e-5`, `llamafactory-cli train sft.yaml learning_rate=2e-5`,
`tune run … --config lora.yaml optimizer.lr=2e-5`: each is read as the config's own format reads its keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from trainlint.documents import Entry, Node, Place, Scalar
from trainlint.documents import Mapping as Tree
from trainlint.formats import Format, Fragment
from trainlint.formats.launch.started import trainings
from trainlint.formats.reading import Key, convert, marked
from trainlint.resolve.join import Member
from trainlint.run import Value, path_info

CONFIG = frozenset(("config", "config_file", "config_path", "c"))
"""Options that name the config itself."""


def with_overrides(joined: Sequence[Member], formats: Mapping[str, Format]) -> list[Fragment]:
    """The members of a run; a launcher that hands the root its config also says what stands behind it."""
    root = joined[0].fragment
    if root.format == "python-script" and root.facts.get("arguments"):
        return _told(joined)
    members = [root]
    for fragment, reason in joined[1:]:
        said: dict[str, Value[object]] = {}
        if reason.how == "starts" and reason.by == root.file and reason.place is not None and not root.starts:
            said = _said(fragment, root, reason.place, formats)
        members.append(replace(fragment, values={**said, **fragment.values}) if said else fragment)
    return members


def _said(launcher: Fragment, root: Fragment, place: Place, formats: Mapping[str, Format]) -> dict[str, Value[object]]:
    from trainlint.formats.launch.command_arguments import mapping
    from trainlint.formats.launch.trainers import overrides

    start = next((one for one in trainings(launcher) if one.command.place[1] <= place[1] <= one.command.place[3]), None)
    form = formats.get(root.format)
    if start is None or form is None or root.root is None or place == (start.program and start.program.place):
        return {}
    marks = marked(root.format)
    flags = frozenset(name for name, key in marks.items() if (info := path_info(key.path)) and info.kind == "flag")
    options, _ = mapping(start.arguments.values(), flags, start.command.place)
    nested, _ = overrides(start.positional, start.command.place)
    entries = [entry for entry in options.entries if entry.name not in CONFIG]
    written = {entry.name: entry.key for entry in entries}
    above: dict[str, Node] = {}
    for entry in entries:
        _dotted(above, entry)
    tree = Tree((*(_entry(name, node) for name, node in above.items()), *nested.entries), start.command.place)
    if not tree.entries:
        return {}
    fragment = form.read(replace(root.document, roots=(tree,)), tree)
    spelled = {name.replace("-", "_"): key for name, key in written.items()}
    return {
        path: replace(value, key=f"{spelled[value.key].raw}" if value.key in spelled else value.key)
        for path, value in fragment.values.items()
        if value.written and value.place is not None and value.place.file == launcher.file
    }


def _told(joined: Sequence[Member]) -> list[Fragment]:
    """A script whose values are its own arguments, by default or as the command line gives them."""
    from trainlint.formats.launch.command_arguments import mapping

    root, *others = (member.fragment for member in joined)
    asked = cast("Mapping[str, tuple[str, bool | None]]", root.facts["arguments"])
    starts = [
        (fragment, start)
        for fragment, reason in joined[1:]
        if reason.how == "starts" and reason.by == root.file and reason.place is not None
        for start in trainings(fragment)
        if start.program is not None and start.command.place[1] <= reason.place.line <= start.command.place[3]
    ]
    if len(starts) != 1:
        return [root, *others]
    launcher, start = starts[0]
    given, unknown = mapping(start.arguments.values(), frozenset(), start.command.place)
    keys = {name.replace("-", "_"): name for name in (*given.names(), *unknown)}
    more = start.command.open or any(word.text is None for word in start.positional)
    values, said = dict(root.values), dict[str, Value[object]]()
    decided: set[str] = set()
    for path, (name, switch) in asked.items():
        if (keys and not name) or name in keys:
            values.pop(path, None)
            entry = given.entry(keys.get(name, ""))
            value = convert(launcher.format, name, entry.value, Key(path)) if entry is not None else None
            if value is not None and entry is not None:
                said[path] = replace(value, key=entry.key.raw, losers=_lost(root.values.get(path)))
        elif switch is not None and not more:
            note = f"`--{name}` is not given"
            values[path] = Value(switch, "derived", name, start.command.place, note=note, file_format=root.format)
        else:
            continue
        decided.add(path)
    unsettled = root.facts.get("unknown")
    lost = frozenset(path for path in decided if path not in values and path not in said)
    open_paths = (unsettled if isinstance(unsettled, frozenset) else frozenset()) - decided | lost
    told = replace(root, values={**values, **said}, facts={**root.facts, "unknown": open_paths})
    return [told, *others]


def _lost(value: Value[object] | None) -> tuple[Value[object], ...]:
    return () if value is None else (replace(value, note="the script's default"),)


def _dotted(tree: dict[str, Node], entry: Entry) -> None:
    """Put `--train.epochs 3` below `train`."""
    head, dot, tail = entry.name.partition(".")
    if not dot:
        tree[head] = entry.value
        return
    known = tree.get(head)
    inner: dict[str, Node] = {}
    if isinstance(known, Tree):
        inner = {one.name: one.value for one in known.entries}
    _dotted(inner, Entry(Scalar(tail, tail, entry.key.place), entry.value))
    tree[head] = Tree(tuple(_entry(name, node) for name, node in inner.items()), entry.key.place)


def _entry(name: str, node: Node) -> Entry:
    return Entry(Scalar(name, name, node.place), node)
