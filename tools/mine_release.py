"""Add releases of a framework to its key history: what came, went, and changed its default.

    python tools/mine_release.py PACKAGE VERSION… [--history FOLDER] [--check]

Each release is downloaded with pip and read without being imported. Of its classes those count that the history has as
sections, and new ones that extend them. Releases are added in order and must be newer than those that are there; one
that is there already changes nothing. What no class says (command lines, JSON objects, notes, renames) stays as it is:
read the printed changes, and add renames by hand. `--check` prints the changes and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compact_history import INHERITS, SAME, number, text
from config_classes import COMPUTED, Field, Package, package

HISTORY = Path(__file__).parents[1] / "schemas/trainlint_schemas/history"
SOURCES = {
    "transformers": r"transformers/(training_args(_seq2seq)?|trainer_utils|utils/(generic|quantization_config))\.py$",
    "trl": r"trl/(?!models/|extras/|scripts/vllm_serve).*\.py$",
    "peft": r"peft/(tuners/.*(config|lycoris_utils)|config|utils/peft_types)\.py$",
    "accelerate": r"accelerate/(utils/(constants|dataclasses)|commands/config/config_args)\.py$",
    "axolotl": r"axolotl/(utils/schemas/.*|integrations/.*args)\.py$",
    "llamafactory": r"llamafactory/(hparams/.*|extras/constants)\.py$",
    "ms-swift": r"swift/(llm/argument/.*|trainers/(arguments|rlhf_arguments)|arguments/.*|megatron/arguments?/.*)\.py$",
}
"""Which files of a package hold its configs."""
_NEW = re.compile(r"(?:Config|(?<!Script)Arguments)$")
PINNED = ("transformers", "accelerate")
LIMIT = 2 << 20
"""Larger sources are no configs (bytes)."""
Entry = dict[str, Any]


def fetch(name: str, release: str) -> tuple[dict[str, str], dict[str, str]]:
    """The sources of a release by path, and what it asks of other packages. Raises SystemExit where pip has none."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--dest",
            folder,
            f"{name}=={release}",
        ]
        wheel = subprocess.run([*command, "--only-binary", ":all:"], capture_output=True, text=True, check=False)
        if wheel.returncode:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{name} {release}: {done.stderr.strip().splitlines()[-1]}")
        (path,) = Path(folder).iterdir()
        files = _unpacked(path, re.compile(rf"{SOURCES[name]}|(METADATA|PKG-INFO)$"))
    metadata = next((text for file, text in sorted(files.items()) if not file.endswith(".py")), "")
    return {file: text for file, text in files.items() if file.endswith(".py")}, dict(pins(metadata))


def _unpacked(path: Path, wanted: re.Pattern[str]) -> dict[str, str]:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            members = [one for one in archive.infolist() if wanted.search(one.filename) and one.file_size < LIMIT]
            return {one.filename: archive.read(one).decode("utf-8", "replace") for one in members}
    found: dict[str, str] = {}
    with tarfile.open(path) as archive:
        for member in archive:
            held = archive.extractfile(member) if wanted.search(member.name) and member.size < LIMIT else None
            if held is not None:
                found[member.name] = held.read().decode("utf-8", "replace")
    return found


def pins(metadata: str) -> list[tuple[str, str]]:
    """What a release asks of the packages that its keys are inherited from."""
    found = []
    for line in metadata.splitlines():
        match = re.match(
            r"Requires-Dist: (?P<name>[\w-]+)\s*(?:\[[^\]]*\])?\s*\(?(?P<spec>[^;()]*)\)?\s*(?P<marker>;.*)?$", line
        )
        if match and match["name"] in PINNED and match["spec"].strip() and "extra" not in (match["marker"] or ""):
            found.append((match["name"], match["spec"].strip().replace(" ", "")))
    return found


def merge(framework: str, table: dict[str, Any], mined: Package, release: str) -> list[str]:
    """Add a release to a framework's table; returns what changed. Raises ValueError where it is older than the last."""
    versions = table["versions"]
    if release in versions:
        return []
    if number(release) < number(versions[-1]):
        raise ValueError(f"{release} is older than {versions[-1]}")
    sections = table["sections"]
    _new_sections(framework, sections, mined, release)
    before = {name: _effective(sections, name) for name in sections}
    changes: list[str] = []
    after: dict[str, dict[str, Entry]] = {}
    for name in sections:
        fields = _fields(mined, name)
        kept = SAME.get((framework, name), {})
        after[name] = (
            before[name]
            if fields is None
            else _merged(before[name], fields, release, versions, sections[name]["first"], frozenset(kept))
        )
        changes += [
            f"{name}.{key}: {_told(before[name].get(key), entry)}"
            for key, entry in after[name].items()
            if entry != before[name].get(key)
        ]
    for name, section in sections.items():
        parent = section.get("inherits")
        above = after.get(parent, {}) if parent else {}
        section["keys"] = {key: entry for key, entry in after[name].items() if above.get(key) != entry}
        if above and (without := sorted(above.keys() - after[name].keys())):
            section["without"] = without
        else:
            section.pop("without", None)
    versions.append(release)
    return changes


def _fields(mined: Package, name: str) -> Mapping[str, Field] | None:
    """The keys of a section in a release, or None where the release does not say them."""
    if name.startswith("enum:"):
        values = mined.enums.get(name.removeprefix("enum:"))
        return None if values is None else {str(value): Field(default=None) for value in values}
    return mined.fields(name) or None


def _new_sections(framework: str, sections: dict[str, Any], mined: Package, release: str) -> None:
    parent, pattern = INHERITS.get(framework, ("", "(?!)"))
    known = {name for name in sections if name in mined.classes}
    for name in sorted(mined.classes):
        if name not in sections and _NEW.search(name) and mined.extends(name, known):
            sections[name] = {"first": release, "keys": {}}
            if re.fullmatch(pattern, name):
                sections[name]["inherits"] = parent
    for name in sorted(sections):
        sections[name] = sections.pop(name)


def _effective(sections: Mapping[str, Any], name: str) -> dict[str, Entry]:
    """A section's entries with those it shares with another of the framework."""
    section = sections[name]
    above = section.get("inherits")
    shared = _effective(sections, above) if above in sections else {}
    kept = {key: entry for key, entry in shared.items() if key not in section.get("without", ())}
    return {**kept, **section["keys"]}


def _merged(
    known: Mapping[str, Entry],
    fields: Mapping[str, Field],
    release: str,
    versions: list[str],
    first: str,
    kept: frozenset[str],
) -> dict[str, Entry]:
    made: dict[str, Entry] = {}
    for key, entry in known.items():
        if key in fields:
            made[key] = _changed(entry, fields[key], release, versions, first, key in kept)
        else:
            made[key] = entry if "removed" in entry else {**entry, "removed": release}
    for key, found in fields.items():
        if key not in known:
            made[key] = _fresh(found, release, first)
    return made


def _fresh(found: Field, release: str, first: str) -> Entry:
    entry: Entry = {}
    if found.types:
        entry["types"] = "|".join(found.types)
    if not found.required and found.default is not COMPUTED:
        entry["default"] = found.default
    if found.choices:
        entry["enum"] = list(found.choices)
    if release != first:
        entry["first"] = release
    if found.required:
        entry["required"] = True
    if found.deprecated:
        entry["deprecated"] = release
    return entry


def _changed(entry: Entry, found: Field, release: str, versions: list[str], first: str, kept: bool) -> Entry:
    made = dict(entry)
    if "removed" in made:
        gone = made.pop("removed")
        missed = [one for one in versions if number(gone) <= number(one)]
        made["absent"] = [*made.get("absent", ()), *missed]
    types = re.split(r"(?<! )\|(?! )", made["types"]) if made.get("types") else []
    if added := [name for name in found.types if name not in types and types]:
        made["types"] = "|".join([*types, *added])
    history = made.get("defaults")
    old = history[-1][1:] if history else [made["default"]] if "default" in made else []
    new = [found.default] if found.default is not COMPUTED and not found.required else []
    if old and isinstance(old[0], dict) and "$one_of" in old[0]:  # another package's release decides
        kept = kept or not new or new[0] in old[0]["$one_of"]
    if (
        not kept
        and (old != new or [type(one) for one in old] != [type(one) for one in new])
        and (old or history or new)
    ):
        begin = made.get("first", first)
        made["defaults"] = [*(history or [[begin, *old]]), [release, *new]]
        made.pop("default", None)
    if isinstance(made.get("enum"), list) and found.choices and set(found.choices) != set(made["enum"]):
        added = [one for one in found.choices if one not in made["enum"]]
        removed = [one for one in made["enum"] if one not in found.choices]
        made["choices"] = [*made.get("choices", ()), [release, added, removed]]
        made["enum"] = list(found.choices)
    if found.deprecated and "deprecated" not in made:
        made["deprecated"] = release
    if found.required != made.get("required", False):
        made.pop("required", None)
        if found.required:
            made["required"] = True
    return made


def _told(old: Entry | None, new: Entry) -> str:
    if old is None:
        return f"new, {json.dumps(new)}"
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    return ", ".join(f"{key} {json.dumps(old.get(key))} → {json.dumps(new.get(key))}" for key in keys)


def main() -> None:
    """Mine the releases that are named."""
    parser = argparse.ArgumentParser(description="Add releases of a framework to its key history.")
    parser.add_argument("package", choices=sorted(SOURCES))
    parser.add_argument("version", nargs="+")
    parser.add_argument("--history", type=Path, default=HISTORY)
    parser.add_argument("--check", action="store_true", help="print the changes, write nothing")
    options = parser.parse_args()
    path = options.history / f"{options.package}.json"
    table = json.loads(path.read_text("utf-8"))
    for release in sorted(options.version, key=number):
        if release in table["versions"]:
            print(f"{options.package} {release}: is there already")
            continue
        sources, asked = fetch(options.package, release)
        changes = merge(options.package, table, package(sources), release)
        for name, spec in asked.items():
            table.setdefault("pins", {}).setdefault(name, {})[release] = spec
        print(f"{options.package} {release}: {len(changes)} changes")
        print("".join(f"  {change}\n" for change in changes), end="")
    if not options.check:
        path.write_text(text(table), "utf-8")


if __name__ == "__main__":
    main()
