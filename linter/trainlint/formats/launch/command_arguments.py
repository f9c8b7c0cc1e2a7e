"""A program's command-line arguments as a config's mapping, so that a trainer's format can read them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from trainlint.documents import Entry, Mapping, Node, Place, Scalar, Sequence
from trainlint.formats.launch.command_line import Word
from trainlint.formats.launch.launch import Option

_WHOLE = re.compile(r"[+-]?\d+")
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
NEGATED = "no_"


def mapping(options: Iterable[Option], flags: frozenset[str], place: Place) -> tuple[Mapping, frozenset[str]]:
    """Options with two dashes as keys and values, and the names of those whose value only a run decides.

    `--no_x` is `x: false` for the known flags that HfArgumentParser gives such a form.
    """
    entries: list[Entry] = []
    unknown: set[str] = set()
    for option in options:
        if not option.key.startswith("--"):
            continue
        name, node = option.name, value(option)
        bare = name.removeprefix(NEGATED)
        if bare != name and bare in flags and not option.values:
            name, node = bare, Scalar(False, "", option.place)
        if node is None:
            unknown.add(name)
        else:
            entries.append(Entry(Scalar(name, option.key, _inner(option)), node))
    return Mapping(tuple(entries), place), frozenset(unknown)


def value(option: Option) -> Node | None:
    """An option's value as a node: a bare flag is true, several words are a list; None where one is unknown."""
    match option.values:
        case ():
            return Scalar(True, "", option.place)
        case (word,):
            return scalar(word)
    nodes = [scalar(word) for word in option.values]
    known = tuple(node for node in nodes if node is not None)
    first, last = option.values[0].place, option.values[-1].place
    place = first._replace(end_line=last.end_line, end_column=last.end_column)
    return Sequence(known, place if place[1:3] <= place[3:5] else first) if len(known) == len(nodes) else None


def scalar(word: Word) -> Node | None:
    """A word as a typed scalar, as argparse's types would make it; a JSON object as a mapping."""
    text = word.text
    if text is None:
        return None
    if text[:1] == "{" and text[-1:] == "}":
        try:
            return _node(json.loads(text), word)
        except ValueError:
            return Scalar(text, word.raw, word.place, False)
    low = text.lower()
    if low in ("true", "false"):
        return Scalar(low == "true", word.raw, word.place)
    if _WHOLE.fullmatch(text) and len(text) < 20:
        return Scalar(int(text), word.raw, word.place)
    if _FLOAT.fullmatch(text):
        return Scalar(float(text), word.raw, word.place)
    return Scalar(text, word.raw, word.place, word.raw == text)


def _node(loaded: object, word: Word) -> Node:
    if isinstance(loaded, dict):
        pairs = ((Scalar(str(key), str(key), word.place), _node(below, word)) for key, below in loaded.items())
        return Mapping(tuple(Entry(key, below) for key, below in pairs), word.place)
    if isinstance(loaded, list):
        return Sequence(tuple(_node(item, word) for item in loaded), word.place)
    return Scalar(loaded, json.dumps(loaded), word.place)


def _inner(option: Option) -> Place:
    """The place of an option's name without its dashes."""
    place = option.place
    dashes = len(option.key) - len(option.key.lstrip("-"))
    return place._replace(column=place.column + dashes) if place.line == place.end_line else place
