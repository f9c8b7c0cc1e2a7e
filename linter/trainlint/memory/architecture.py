"""Architectures as data: one file a model family lists the operations of its blocks, sizes in the config's own terms.

    extends = "llama"                    # begin with that family's file; tables are merged, everything else is replaced
    [dims]                               # name = alternatives separated by |, the first whose names are all known
    [stacks.NAME]                        # embed, block (parts in order), final; hold: locals of the model's forward
                                         # keeps_outputs: it keeps every block's output to its end
    [stacks.NAME.variants.NAME]          # when = a condition on `layer`: other parts for some layers
    [stacks.NAME.types]                  # what layers of a type (config's layer_types) see under shared names
    [head]                               # kind, ops;   [heads.KIND] other heads, with dims of their own

A file is named after the model type it serves; `models.toml` lists further types. Files are read one at a time, when
their family is first asked for.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from trainlint.memory.errors import ArchitectureFault, MissingShape
from trainlint.memory.expressions import Expression, Statement, expression, statements

FIELDS = {"extends", "about", "dims", "stacks", "head", "heads", "label"}
STACK_FIELDS = {"layers", "hold", "embed", "block", "final", "variants", "types", "keeps_outputs"}
HEAD_FIELDS = {"kind", "ops", "dims"}
VARIANT_FIELDS = {"when", "block"}

Table = dict[str, object]

HEADS = {"image-classification": "classification", "speech-seq2seq": "seq2seq"}
"""Heads of the run vocabulary that differ in their inputs only."""


def folder() -> Path:
    """Where the data files are."""
    import trainlint_schemas

    return Path(next(iter(trainlint_schemas.__path__))) / "architectures"


def _table(value: object, place: str) -> Table:
    if not isinstance(value, dict):
        raise ArchitectureFault(place, "is no table")
    return value


def _text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise ArchitectureFault(place, "is no text")
    return value


def _known(table: Table, fields: set[str], place: str) -> None:
    unknown = sorted(set(table) - fields)
    if unknown:
        raise ArchitectureFault(place, "unknown " + ", ".join(f"`{name}`" for name in unknown))


def _merged(base: Table, change: Table) -> Table:
    out = dict(base)
    for key, value in change.items():
        old = out.get(key)
        out[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return out


class Variant:
    """Another block body for the layers where `when` holds."""

    __slots__ = ("block", "name", "when")

    def __init__(self, name: str, when: Expression, block: list[Statement]) -> None:
        self.name = name
        self.when = when
        self.block = block


class Stack:
    """One encoder or decoder: what comes before its blocks, the blocks, what comes after."""

    __slots__ = ("block", "embed", "final", "hold", "keeps_outputs", "layers", "name", "types", "variants")

    def __init__(self, name: str, data: Table, place: str) -> None:
        _known(data, STACK_FIELDS, place)
        self.name = name
        self.layers = expression(_text(data.get("layers", "layers"), place), place)
        hold = data.get("hold", [])
        if not isinstance(hold, list):
            raise ArchitectureFault(place, "`hold` is no list")
        self.hold = tuple(str(part) for part in hold)
        self.keeps_outputs = bool(data.get("keeps_outputs", False))
        self.embed = statements(_text(data.get("embed", ""), place), f"{place}.embed")
        self.final = statements(_text(data.get("final", ""), place), f"{place}.final")
        parts = _table(data.get("block", {}), f"{place}.block")
        self.block = _body(parts, f"{place}.block")
        self.variants: list[Variant] = []
        for key, value in _table(data.get("variants", {}), place).items():
            where = f"{place}.variants.{key}"
            variant = _table(value, where)
            _known(variant, VARIANT_FIELDS, where)
            body = _body(_merged(parts, _table(variant.get("block", {}), where)), where)
            self.variants.append(Variant(key, expression(_text(variant.get("when"), where), where), body))
        self.types: dict[str, dict[str, str]] = {}
        for key, value in _table(data.get("types", {}), place).items():
            self.types[key] = {seen: str(shared) for seen, shared in _table(value, f"{place}.types.{key}").items()}

    def bodies(self) -> list[list[Statement]]:
        """The block's bodies: the usual one, and those of the variants."""
        return [self.block, *(variant.block for variant in self.variants)]


def _body(parts: Table, place: str) -> list[Statement]:
    out: list[Statement] = []
    for key, value in parts.items():
        out += statements(_text(value, f"{place}.{key}"), f"{place}.{key}")
    return out


class Head:
    """What follows the last stack, down to the loss."""

    __slots__ = ("dims", "kind", "ops")

    def __init__(self, kind: str, data: Table, place: str) -> None:
        _known(data, HEAD_FIELDS, place)
        self.kind = kind
        self.ops = statements(_text(data.get("ops"), place), place)
        dims = _table(data.get("dims", {}), place)
        self.dims = _dimensions({name: _text(value, place) for name, value in dims.items()}, place)


Dimensions = dict[str, list[Expression]]


def _dimensions(dims: Mapping[str, str], place: str) -> Dimensions:
    out: Dimensions = {}
    for name, text in dims.items():
        where = f"{place}.{name}"
        out[name] = [expression(part, where) for part in text.split("|")]
    return out


class Architecture:
    """One family, parsed and checked."""

    def __init__(self, name: str, data: Table) -> None:
        _known(data, FIELDS, name)
        self.name = name
        dims = _table(data.get("dims"), f"{name}.dims")
        self.dims = _dimensions({key: _text(value, f"{name}.dims") for key, value in dims.items()}, f"{name}.dims")
        self.stacks = [
            Stack(key, _table(value, f"{name}.{key}"), f"{name}.stacks.{key}")
            for key, value in _table(data.get("stacks"), f"{name}.stacks").items()
        ]
        head = _table(data.get("head"), f"{name}.head")
        self.head = Head(_text(head.get("kind"), f"{name}.head"), head, f"{name}.head")
        self.heads: dict[str, Head] = {}
        for key, value in _table(data.get("heads", {}), f"{name}.heads").items():
            self.heads[key] = Head(key, _table(value, f"{name}.heads.{key}"), f"{name}.heads.{key}")
        self.heads[self.head.kind] = self.head

    def headed(self, kind: str) -> Head:
        """The head of that kind, or the family's own where it has no such one."""
        return self.heads.get(HEADS.get(kind, kind), self.head)

    def sizes(self, config: Mapping[str, object], head: Head, given: Mapping[str, object]) -> dict[str, object]:
        """Every dim from a model's config; `given` are sizes that the run decides (the sequence length)."""
        known = flattened(config)
        known.update(given)
        out: dict[str, object] = {}
        missing: list[str] = []
        for name, alternatives in ({**self.dims, **head.dims} if head.dims else self.dims).items():
            for alternative in alternatives:
                if alternative.alone:
                    value = known.get(alternative.alone)
                else:
                    try:
                        value = alternative.value(known)
                    except (NameError, TypeError, ZeroDivisionError):
                        continue
                if value is not None:
                    out[name] = known[name] = int(value) if isinstance(value, bool) else value
                    break
            else:
                missing += [part for part in alternatives[0].names if part not in known] or [name]
        if missing:
            raise MissingShape(dict.fromkeys(missing))
        return out


def flattened(config: Mapping[str, object]) -> dict[str, object]:
    """The config with nested tables' keys beside the others, as `table__key`."""
    out = dict(config)
    for key, value in config.items():
        if isinstance(value, Mapping):
            out.update({f"{key}__{inner}": part for inner, part in value.items()})
    return out


_data: dict[str, Table] = {}
_architectures: dict[str, Architecture] = {}
_models: dict[str, str] = {}


def data(stem: str) -> Table:
    """The data of one file, with what it extends merged in."""
    found = _data.get(stem)
    if found is None:
        found = tomllib.loads((folder() / f"{stem}.toml").read_text(encoding="utf-8"))
        base = found.pop("extends", None)
        if base is not None:
            found = _merged(data(_text(base, f"{stem}.extends")), found)
        _data[stem] = found
    return found


def models() -> dict[str, str]:
    """Model types that another type's file serves."""
    if not _models:
        table = tomllib.loads((folder() / "models.toml").read_text(encoding="utf-8"))
        _models.update({key: _text(value, f"models.toml: {key}") for key, value in table.items()})
    return _models


def find(model_type: str) -> Architecture | None:
    """The architecture that serves a model type, or None."""
    found = _architectures.get(model_type)
    if found is None:
        stem = models().get(model_type, model_type)
        known = stem.replace("_", "").replace("-", "").isalnum() and (folder() / f"{stem}.toml").is_file()
        if not known or stem in ("models", "heads"):
            return None
        found = _architectures.get(stem)
        if found is None:
            common = tomllib.loads((folder() / "heads.toml").read_text(encoding="utf-8"))
            found = _architectures[stem] = Architecture(stem, _merged(common, data(stem)))
        _architectures[model_type] = found
    return found
