"""What `trainlint show` prints: each run as it was resolved, every value with where it comes from."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from trainlint.documents import Place
from trainlint.report.color import paint
from trainlint.report.excerpt import harmless
from trainlint.report.text import at
from trainlint.resolve import Reason, Resolved
from trainlint.run import TrainingRun, Value, paths

WIDTH = 60
"""Longer values are cut in the text report."""
NARROWS = (
    ("device.", "name the `device` in the settings, or with `--device`"),
    ("model.", "name a folder with the model's `config.json`, or fetch it: `trainlint models add ID`"),
    ("versions.", "pin it in a requirements or lock file, or in `versions` of the settings"),
    ("data.rows", "say `data = { rows = … }` in the settings"),
    ("parallel.", "add the launcher, or say `devices` in the settings"),
    ("batch.effective", "add the launcher, or say `devices` in the settings"),
    ("length.max", "set the longest length in the config"),
    ("", "set it in the config"),
)
"""What would make an unknown path known, by how the path begins."""
ASKED = (
    "framework", "method", "objective", "model.id", "model.config", "model.parameters", "precision.weights",
    "precision.compute", "batch.micro", "batch.accumulation", "batch.effective", "length.max", "checkpointing.kind",
    "optimizer.name", "sharding.kind", "parallel.world", "device.name", "device.memory", "data.rows",
)  # fmt: skip
"""Paths that are worth a word in the text report where they are unknown; the JSON lists every one."""


Wanted = Callable[[str], bool]
"""Whether a path is asked for."""


def asked_for(words: Sequence[str]) -> Wanted:
    """The paths that some words mean: paths, groups (`batch`) and globs (`precision.*16`); all without words."""
    return lambda path: (
        not words or any(path == word or path.startswith(word + ".") or fnmatchcase(path, word) for word in words)
    )


def everything(path: str) -> bool:
    """All paths."""
    return True


def json_text(runs: Sequence[Resolved], wanted: Wanted = everything) -> str:
    """All runs as JSON (see `report.schema.json`), a file and a value a line."""
    return '{"version": 1, "runs": [\n' + ",\n".join(_block(_run(one, wanted)) for one in runs) + "\n]}\n"


def _block(run: dict[str, object]) -> str:
    parts = []
    for key, value in run.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            rows = ",\n  ".join(json.dumps(entry, ensure_ascii=False) for entry in value)
            parts.append(f'"{key}": [\n  {rows}]')
        else:
            parts.append(f'"{key}": {json.dumps(value, ensure_ascii=False)}')
    return " {" + ",\n  ".join(parts) + "}"


def ordered(run: TrainingRun) -> Iterator[tuple[str, Value[object]]]:
    """The known values in the vocabulary's order, those of open groups last by name."""
    yield from ((path, run.values[path]) for path in paths() if path in run.values)
    yield from ((path, run.values[path]) for path in sorted(run.values) if path not in paths())


def unknown(run: TrainingRun) -> list[str]:
    """The paths of the vocabulary of which nothing is known."""
    return [path for path in paths() if path not in run.values and path not in run.possible]


def narrows(run: TrainingRun, path: str) -> str:
    """What would decide between the possible values of a path, or make an unknown one known."""
    notes = " ".join(value.note for value in run.possible.get(path, ()))
    known = ("transformers", "trl", "peft", "accelerate", "torch", "deepspeed", "axolotl", "llamafactory", "mlx-lm")
    packages = [name for name in known if name in notes.replace(",", " ").split()]
    if packages:
        return f"pin {' and '.join(f'`{name}`' for name in packages)} in a requirements file"
    if path in run.possible and "checkpoint" in notes:
        return NARROWS[1][1]
    return next(hint for begins, hint in NARROWS if path.startswith(begins))


def _run(resolved: Resolved, wanted: Wanted) -> dict[str, object]:
    run, places = resolved.run, _Places(resolved)
    return {
        "root": run.root,
        "format": run.root_format,
        "starts": resolved.fragments[0].launches,
        "files": [*_members(resolved, places), *_sources(resolved)],
        "values": [_value(path, value, places) for path, value in ordered(run) if wanted(path)],
        "possible": [
            {
                "path": path,
                "options": [{"value": _plain(option.value), "note": option.note} for option in run.possible[path]],
                "narrows": narrows(run, path),
            }
            for path in paths()
            if path in run.possible and path not in run.values and wanted(path)
        ],
        "unknown": [path for path in unknown(run) if wanted(path)],
    }


def _members(resolved: Resolved, places: _Places) -> Iterator[dict[str, object]]:
    for fragment, reason in zip(resolved.fragments, resolved.reasons, strict=True):
        yield {
            "file": fragment.file,
            "format": fragment.format,
            "how": reason.how,
            "by": reason.by or None,
            "key": reason.key or None,
            "location": places.data(reason.place),
        }


def _sources(resolved: Resolved) -> Iterator[dict[str, object]]:
    """Files that no fragment was read from but values were: settings, requirement and lock files, the data."""
    seen = set(resolved.run.files)
    for path, value in ordered(resolved.run):
        file = value.place.file if value.place is not None else None
        if file is not None and file not in seen:
            seen.add(file)
            kind = "versions" if path.startswith("versions.") and value.file_format else "settings"
            how = "data" if path.startswith("data.") and not value.written else kind
            yield {
                "file": file,
                "format": value.file_format or None,
                "how": how,
                "by": None,
                "key": None,
                "location": None,
            }


def _value(path: str, value: Value[object], places: _Places) -> dict[str, object]:
    return {
        "path": path,
        "value": _plain(value.value),
        "unit": value.unit or None,
        "origin": value.origin,
        "key": value.key or None,
        "raw": value.raw or None,
        "location": places.data(value.place),
        "note": value.note or None,
        "losers": [
            {
                "value": _plain(loser.value),
                "key": loser.key or None,
                "raw": loser.raw or None,
                "location": places.data(loser.place),
                "why": loser.note or None,
            }
            for loser in value.losers
        ],
    }


def _plain(value: object) -> object:
    """A value as JSON holds it; the values of environment variables without their places."""
    match value:
        case Value():
            return _plain(value.value)
        case dict():
            return {str(name): _plain(below) for name, below in value.items()}
        case list() | tuple():
            return [_plain(below) for below in value]
        case float() if not math.isfinite(value):
            return str(value)
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)


class _Places:
    """Places of a run as they are printed; those in the code of a notebook as places in its file, with the cell."""

    def __init__(self, resolved: Resolved) -> None:
        documents = [fragment.document for fragment in resolved.fragments]
        self.notebooks = {one.file: one.notebook for one in documents if one.notebook is not None}

    def text(self, place: Place) -> str:
        """`file:line:column`."""
        notebook = self.notebooks.get(place.file)
        return at(place) if notebook is None else f"{at(notebook.place(place))} in cell {notebook.cell(place)}"

    def data(self, place: Place | None) -> dict[str, object] | None:
        """A place as the report's schema has it."""
        if place is None:
            return None
        notebook = self.notebooks.get(place.file)
        found = place if notebook is None else notebook.place(place)
        made: dict[str, object] = dict(zip(Place._fields, found, strict=True))
        return made if notebook is None else {**made, "cell": notebook.cell(place)}


def text(runs: Sequence[Resolved], color: bool = False, wanted: Wanted = everything) -> str:
    """All runs for people; those that no trainer starts come last."""
    ranked = sorted(runs, key=lambda resolved: not resolved.fragments[0].launches)
    shown = ["".join(f"{line}\n" for line in _lines(one, color, wanted)) for one in ranked]
    return "\n".join(shown) or "no training config here\n"


def _lines(resolved: Resolved, color: bool, wanted: Wanted) -> Iterator[str]:
    run, launches, places = resolved.run, resolved.fragments[0].launches, _Places(resolved)
    yield f"{paint(harmless(run.root), 'bold', color)}  {run.root_format}{'' if launches else ', starts no run'}"
    yield from _table(_files(resolved, places))
    known = [(path, value) for path, value in ordered(run) if wanted(path)]
    rows = [(path, _shown(value), _origin(value, places)) for path, value in known]
    widths = [max((len(row[at]) for row in rows), default=0) for at in (0, 1)]
    for (_, value), (path, said, origin) in zip(known, rows, strict=True):
        yield f"  {path:<{widths[0]}}  {said:<{widths[1]}}  {paint(origin, 'dim', color)}".rstrip()
        for loser in value.losers:
            yield f"    {paint('over', 'warning', color)} {_shown(loser)}, {_origin(loser, places)}{_because(loser)}"
    for path in filter(wanted, paths()):
        if path in run.possible and path not in run.values:
            options = " or ".join(f"{_shown(value)} ({value.note})" for value in run.possible[path])
            said = f"{options or 'only the run decides'}; {narrows(run, path)}"
            yield f"  {path}: {paint('open', 'warning', color)}: {said}"
    for path in filter(wanted, unknown(run)):
        if path == "model.parameters" and run.model.config is not None:
            continue  # the shape says it
        if path in ASKED and launches:
            yield f"  {path}: {paint('unknown', 'warning', color)}: {narrows(run, path)}"


def _files(resolved: Resolved, places: _Places) -> Iterator[tuple[str, str, str]]:
    for fragment, reason in zip(resolved.fragments, resolved.reasons, strict=True):
        if reason.how != "root":
            yield f"  {harmless(fragment.file)}", fragment.format, _reason(reason, places)
    for source in _sources(resolved):
        said = {"versions": "versions", "settings": "settings", "data": "the data"}[str(source["how"])]
        yield f"  {harmless(str(source['file']))}", str(source["format"] or ""), said


def _reason(reason: Reason, places: _Places) -> str:
    where = f" at {places.text(reason.place)}" if reason.place is not None else ""
    key = f"`{reason.key}`" if reason.key else reason.by
    match reason.how:
        case "named":
            return f"named by {key}{where}"
        case "starts":
            return f"starts {harmless(reason.by)}{where}"
        case "beside":
            return f"lies beside {harmless(reason.by)}"
    return "the run starts here"


def _table(rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def _shown(value: Value[object]) -> str:
    """A value on one line, with its unit; numbers of bytes also in GiB."""
    plain = _plain(value.value)
    if isinstance(plain, float) and plain.is_integer():
        plain = int(plain)
    match plain:
        case dict():
            text = ", ".join(plain)
        case list():
            text = ", ".join(map(str, plain))
        case bool() | None:
            text = str(plain).lower()
        case float():
            text = f"{plain:g}"
        case _:
            text = str(plain)
    text = harmless(text)
    text = text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
    if value.unit == "byte" and isinstance(plain, int):
        return f"{text} bytes ({plain / (1 << 30):.3g} GiB)"
    return f"{text} {value.unit}{'' if plain == 1 else 's'}" if value.unit else text


def _origin(value: Value[object], places: _Places) -> str:
    note = f": {harmless(value.note)}" if value.note else ""
    if not value.written:
        return f"{value.origin}{note}"  # its place, if any, is a whole file, which the note names
    raw = value.raw if len(value.raw) <= WIDTH // 2 and "\n" not in value.raw else ""
    sign = " " if value.key.startswith("-") else ": "
    key = f"`{harmless(value.key + sign + raw if raw else value.key)}`" if value.key else "written"
    return f"{key} at {places.text(value.place)}" if value.place is not None else key


def _because(loser: Value[object]) -> str:
    return f": {harmless(loser.note)}" if loser.note and loser.written else ""
