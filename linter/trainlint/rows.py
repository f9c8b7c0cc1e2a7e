"""A bounded sample of the rows of a data file: JSON, JSON lines, CSV, TSV, Parquet.

A row that can't be read is left out. No more than `BUDGET` bytes of a file are read, but for counting the lines of a
JSON-lines file up to `COUNTED`.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

SAMPLE = 1000
"""Rows looked at. The 95th percentile of 1,000 rows lies between the true 93.6th and 96.4th (95 % binomial bounds)."""
BUDGET = 4 << 20
"""Bytes read of a file at most."""
BLOCKS = 32
"""Places of a large JSON-lines file that are looked at."""
LONGEST = 1 << 20
"""Bytes of a single row beyond which it is left out."""
COUNTED = 64 << 20
"""Bytes up to which the lines of a file are counted."""


class Unreadable(Exception):  # noqa: N818 - a reason, not a failure of ours
    """Why a file gives no rows."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The sampled rows as plain values, how many rows the file has (estimated unless `exact`), and whether `whole`."""

    rows: tuple[object, ...]
    count: int
    exact: bool
    whole: bool
    skipped: int = 0


def sample(path: Path) -> Rows:
    """Rows of a file. Raises Unreadable with the reason where there are none to be had."""
    if not path.is_file():
        raise Unreadable("there is no such file")
    try:
        match path.suffix.lower():
            case ".json" | ".jsonl" | ".ndjson":
                return _json(path)
            case ".csv":
                return _table(path, ",")
            case ".tsv":
                return _table(path, "\t")
            case ".parquet":
                return _parquet(path)
            case other:
                raise Unreadable(f"`{other or path.name}` is no data file that trainlint reads")
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from None


def _json(path: Path) -> Rows:
    with path.open("rb") as file:
        first = file.readline(LONGEST).removeprefix(b"\xef\xbb\xbf").lstrip()
        while not first and (line := file.readline(LONGEST)):
            first = line.lstrip()
        second = file.read(64).lstrip()
        if first.startswith(b"[") and not (second.startswith(b"[") and _parsed(first) is not None):
            return _array(file)
        if path.suffix.lower() == ".json" and not (isinstance(_parsed(first), dict) and second.startswith(b"{")):
            return _mapping(file)
        return _lines(file)


def _parsed(line: bytes) -> object:
    try:
        return cast(object, json.loads(line))
    except (ValueError, RecursionError):
        return None


def _lines(file: BinaryIO) -> Rows:
    """Lines that start in blocks spread evenly: every row is as likely to be seen, whatever its length."""
    size = file.seek(0, os.SEEK_END)
    whole = size <= BUDGET
    block = BUDGET if whole else BUDGET // BLOCKS
    found: list[object] = []
    skipped = read = lines = 0
    for number in range(1 if whole else BLOCKS):
        file.seek(start := (size - block) * number // (BLOCKS - 1) if not whole else 0)
        if start:
            file.readline(LONGEST)
        first = at = file.tell()
        here = 0
        while at < start + block and (line := file.readline(LONGEST)):
            at += len(line)
            if not line.strip():
                continue
            lines += 1
            if here >= (SAMPLE if whole else -(-SAMPLE // BLOCKS)):
                continue
            row = _parsed(line)
            here += row is not None
            skipped += row is None
            if row is not None:
                found.append(row)
        read += at - first
    if not found:
        raise Unreadable("no line of it is JSON")
    if whole:
        return Rows(tuple(found), lines, True, lines == len(found), skipped)
    if size <= COUNTED:
        file.seek(0)
        return Rows(tuple(found), _newlines(file), True, False, skipped)
    return Rows(tuple(found), round(size * lines / max(1, read)), False, False, skipped)


def _newlines(file: BinaryIO) -> int:
    count, last = 0, b"\n"
    while chunk := file.read(BUDGET):
        count += chunk.count(b"\n")
        last = chunk[-1:]
    return count + (last != b"\n")


def _array(file: BinaryIO) -> Rows:
    """The rows at the start of a JSON array: further ones can't be found without reading all before them."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    text = file.read(BUDGET).decode("utf-8-sig", "replace")
    decoder = json.JSONDecoder()
    found: list[object] = []
    at = start = text.index("[") + 1
    while len(found) < SAMPLE:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        if at >= len(text) or text[at] == "]":
            break
        try:
            row, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        found.append(row)
    if not found:
        raise Unreadable("no row of it could be read")
    whole = size <= BUDGET and text[at:].lstrip().startswith("]")
    share = len(text[start:at].encode()) / len(found)
    return Rows(tuple(found), len(found) if whole else max(len(found), round(size / share)), whole, whole)


def _mapping(file: BinaryIO) -> Rows:
    """A JSON mapping that holds the rows under one of its keys, or a list per column."""
    size = file.seek(0, os.SEEK_END)
    if size > BUDGET:
        raise Unreadable("a JSON mapping this large is not read")
    file.seek(0)
    match _parsed(file.read()):
        case dict() as loaded:
            lists = {str(key): value for key, value in loaded.items() if isinstance(value, list) and value}
            nested = [value for value in lists.values() if isinstance(value[0], dict)]
            if len(nested) == 1:
                rows: list[object] = nested[0]
            elif lists and not nested and len({len(value) for value in lists.values()}) == 1:
                rows = [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]
            else:
                raise Unreadable("its rows were not found")
            return Rows(tuple(rows[:SAMPLE]), len(rows), True, len(rows) <= SAMPLE)
        case _:
            raise Unreadable("it is not JSON")


def _table(path: Path, delimiter: str) -> Rows:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        raw = file.read(BUDGET)
    whole = size <= BUDGET
    if not whole:
        raw = raw[: raw.rfind(b"\n") + 1]
    reader = csv.DictReader(io.StringIO(raw.decode("utf-8-sig", "replace"), newline=""), delimiter=delimiter)
    found = tuple(_readable(reader))
    if not found:
        raise Unreadable("no row of it could be read")
    if whole and len(found) < SAMPLE:
        return Rows(found, len(found), True, True)
    share = sum(len(str(value)) + 1 for row in found for value in row.values()) / len(found)
    return Rows(found, max(len(found), round(size / max(1.0, share))), False, False)


def _readable(reader: csv.DictReader[str]) -> Iterator[dict[str, object]]:
    for _ in range(SAMPLE):
        try:
            row = next(reader)
        except (StopIteration, csv.Error):  # csv gives up where a field has more than 128 KiB
            return
        yield {str(key): value for key, value in row.items() if key is not None}


def _parquet(path: Path) -> Rows:
    try:
        from pyarrow import ArrowException  # type: ignore[import-not-found,import-untyped,unused-ignore]
        from pyarrow.parquet import ParquetFile  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise Unreadable("reading Parquet needs pyarrow: install `trainlint[parquet]`") from None
    try:
        with ParquetFile(path) as file:
            total = file.metadata.num_rows
            groups = file.metadata.num_row_groups
            places = sorted({groups * part // 4 for part in range(min(4, groups))})
            each = -(-SAMPLE // max(1, len(places)))
            found: list[object] = []
            for group in places:
                batch = next(file.iter_batches(batch_size=each, row_groups=[group]), None)
                found += batch.to_pylist() if batch is not None else []
    except ArrowException as error:
        raise Unreadable(f"it is no Parquet file: {error}") from None
    return Rows(tuple(found[:SAMPLE]), total, True, len(found) == total)
