"""Trainers that a command line names by their program: LitGPT, ms-swift, OpenRLHF, and verl with Hydra's overrides."""

from __future__ import annotations

import re
from collections.abc import Iterable

from trainlint.documents import Entry, Mapping, Node, Place, Scalar
from trainlint.formats import litgpt, ms_swift, openrlhf, verl
from trainlint.formats.format import Format
from trainlint.formats.fragment import Fragment
from trainlint.formats.launch import command_arguments
from trainlint.formats.launch.command_line import Word
from trainlint.formats.launch.launch import Launch, behind
from trainlint.formats.reading import marked
from trainlint.run import Value, path_info

FORMATS: dict[str, Format] = {
    format.name: format for format in (litgpt.FORMAT, ms_swift.FORMAT, openrlhf.FORMAT, verl.FORMAT)
}
"""By the trainer's name, which is the format's."""
_OVERRIDE = re.compile(r"\+{0,2}([A-Za-z_][\w./@-]*)=")
_VERL = re.compile(r"(?:^|[./])(?:main_ppo|sft_trainer|fsdp_sft_trainer|main_dapo|main_spin|main_sppo)(?:\.py)?$")


def whose(start: Launch) -> str:
    """The trainer whose program a launch starts, or an empty word."""
    program = (start.program.text or "") if start.program is not None else ""
    names = frozenset(start.arguments)
    if start.launcher == "litgpt":
        return litgpt.NAME if names - {"config"} or len(start.positional) > 1 else ""
    if start.launcher == "swift":
        return ms_swift.NAME if names - {"config"} else ""
    if "openrlhf" in program and openrlhf.objective_of(program) is not None:
        return openrlhf.NAME
    if names & ms_swift.TUNERS and "model" in names and "dataset" in names:
        return ms_swift.NAME
    if _VERL.search(program) and any(_OVERRIDE.match(word.text or word.cells.text) for word in start.positional):
        return verl.NAME
    return ""


def flags(who: str) -> frozenset[str]:
    """Arguments of a trainer that are on or off."""
    return frozenset(name for name, key in marked(who).items() if (info := path_info(key.path)) and info.kind == "flag")


def mapping(who: str, start: Launch) -> tuple[Mapping, frozenset[str]]:
    """The arguments as the trainer's config, and the names of those that only a run decides."""
    if who == verl.NAME:
        return overrides(start.positional, start.command.place)
    return command_arguments.mapping(start.arguments.values(), flags(who), start.command.place)


def overrides(words: Iterable[Word], place: Place) -> tuple[Mapping, frozenset[str]]:
    """Hydra's `a.b.c=value` as nested keys; `~a` takes away and says nothing here."""
    nested: dict[str, object] = {}
    unknown: set[str] = set()
    for word in words:
        found = _OVERRIDE.match(word.text if word.text is not None else word.cells.text)
        if found is None or "@" in found[1] or "/" in found[1]:
            continue
        value = behind(word, found.end())
        node = command_arguments.scalar(value)
        if node is None:
            unknown.add(found[1])
            continue
        *above, last = found[1].split(".")
        group = nested
        for name in above:
            below = group.setdefault(name, {})
            if not isinstance(below, dict):
                break
            group = below
        else:
            group[last] = (_typed(node), word.place)
    return _tree(nested, place), frozenset(unknown)


def _typed(node: Node) -> Node:
    """Hydra reads `null` as nothing."""
    if isinstance(node, Scalar) and node.value == "null":
        return Scalar(None, node.raw, node.place)
    return node


def _tree(nested: dict[str, object], place: Place) -> Mapping:
    entries = []
    for name, below in nested.items():
        if isinstance(below, dict):
            entries.append(Entry(Scalar(name, name, place), _tree(below, place)))
        elif isinstance(below, tuple):
            node, at = below
            entries.append(Entry(Scalar(name, name, at), node))
    return Mapping(tuple(entries), place)


def finish(fragment: Fragment, who: str, start: Launch) -> None:
    """What the command says beside its arguments: OpenRLHF's objective, LitGPT's model."""
    if who == litgpt.NAME and len(start.positional) > 1 and start.positional[1].text:
        model = start.positional[1]
        fragment.values["model.id"] = Value(model.text, "written", "checkpoint_dir", model.place, model.raw)
    if who == openrlhf.NAME and start.program is not None:
        objective = openrlhf.objective_of(start.program.text or "")
        note = "the program's name"
        fragment.values["objective"] = Value(objective, "derived", place=start.program.place, note=note)
