"""How long the samples of a local data file are, in tokens.

A bounded sample of rows (`trainlint.rows`: 1,000 rows, 4 MiB) is joined row by row to the text a trainer would make of
it, without the chat template's own tokens. With the model's `tokenizer.json` and the `tokenizers` package the tokens
are counted; else they lie in a range that follows from the characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from trainlint.rows import Rows, Unreadable, sample

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "max": 1.0}

# Characters a token. Measured with a vocabulary of 131 thousand (Mistral's tekken) and one of 32 thousand (Llama's
# SentencePiece) on texts of 1,000 to 3,000 characters, runs of white space counted as one character: English prose and
# licences at most 4.8, code 4.4, YAML and JSON 4.6, all at least 1.5 but for tables of numbers. A quarter is added for
# larger vocabularies and smoother prose.
FEWEST = 5.5
MOST = 1.5
# Han, kana and hangul: 0.65 to 1.7 characters a token in the same two; vocabularies made for them reach 1.8. Bytes
# where a vocabulary lacks the character: three tokens.
CJK_FEWEST = 2.0
CJK_MOST = 0.4
# Other scripts are between Latin and, in vocabularies made for English, two tokens a character.
OTHER_MOST = 0.5
# A turn's marks, role and line ends in the chat templates of the day: 3 (Llama-2) to 8 (Llama-3 with a date).
TURN = 8

CJK = re.compile("[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
OTHER = re.compile("[\u0250-\u10ff\u1200-\u1fff\ua000-\uabff\U00010000-\U0001ffff]")

CONVERSATIONS = ("messages", "conversations", "conversation", "dialogue", "dialog", "chat")
CHOICES = (("chosen", "rejected"), ("accepted", "rejected"), ("response_chosen", "response_rejected"))
JOINED = (
    ("system", "history", "instruction", "input", "output"),
    ("instruction", "input", "response"),
    ("system", "instruction", "context", "response"),
    ("prompt", "completion"),
    ("prompt", "response"),
    ("prompt", "answer"),
    ("query", "response"),
    ("question", "answer"),
    ("question", "response"),
    ("problem", "solution"),
    ("input", "output"),
    ("instruction", "output"),
)
ALONE = ("text", "content", "document", "prompt")


@dataclass(frozen=True, slots=True)
class Lengths:
    """The lengths of a file's samples.

    `rows` counts all rows of the file (estimated unless `rows_exact`). `tokens` has the percentiles p50, p90, p95 and
    the longest as (low, high), equal where `exact`; they are those of the `sample` rows looked at. `note` says in words
    what they rest on.
    """

    rows: int
    rows_exact: bool
    tokens: dict[str, tuple[int, int]]
    exact: bool
    sample: int
    note: str


def measure(path: str | Path, tokenizer: str | Path | None = None, columns: Sequence[str] = ()) -> Lengths | None:
    """The lengths of a data file's samples, or None where they can't be known (`obstacle` says why).

    `columns`: those that make a sample, where the config names them; else the usual shapes are looked for.
    """
    try:
        return _measured(Path(path), None if tokenizer is None else Path(tokenizer), columns)
    except Unreadable:
        return None


def obstacle(path: str | Path, tokenizer: str | Path | None = None, columns: Sequence[str] = ()) -> str:
    """Why `measure` gives None, in a few words; empty where it does not."""
    try:
        _measured(Path(path), None if tokenizer is None else Path(tokenizer), columns)
    except Unreadable as reason:
        return str(reason)
    return ""


def _measured(path: Path, tokenizer: Path | None, columns: Sequence[str]) -> Lengths:
    rows = sample(path)
    count = _counter(tokenizer)
    found: list[tuple[int, int]] = []
    for row in rows.rows:
        if isinstance(row, dict) and isinstance(row.get("input_ids"), list):
            found.append((len(row["input_ids"]), len(row["input_ids"])))
            continue
        texts = list(_texts(row, columns))
        if texts:
            found.append(max(_length(parts, count) for parts in texts))
    if len(found) * 2 < len(rows.rows):
        names = sorted(rows.rows[0]) if isinstance(rows.rows[0], dict) else []
        raise Unreadable(f"no known shape of a sample: columns {', '.join(map(str, names[:8])) or 'unknown'}")
    lows, highs = sorted(low for low, _ in found), sorted(high for _, high in found)
    exact = all(low == high for low, high in found)
    tokens = {name: (_at(lows, share), _at(highs, share)) for name, share in PERCENTILES.items()}
    return Lengths(rows.count, rows.exact, tokens, exact, len(found), _note(rows, len(found), exact))


def _note(rows: Rows, looked: int, exact: bool) -> str:
    part = "all rows" if rows.whole and looked == len(rows.rows) else f"{looked:,} of {rows.count:,} rows"
    return f"{part}, {'counted without the chat template' if exact else 'estimated from characters'}"


def _at(values: list[int], share: float) -> int:
    """The smallest value that at least `share` of the values do not exceed."""
    return values[max(0, ceil(share * len(values) - 1e-9) - 1)]


def _counter(tokenizer: Path | None) -> Callable[[str], int] | None:
    """Counts a text's tokens; None where there is no tokenizer or no package to use it."""
    if tokenizer is None:
        return None
    if tokenizer.is_dir():
        tokenizer = tokenizer / "tokenizer.json"
    try:
        from tokenizers import Tokenizer  # type: ignore[import-not-found,import-untyped,unused-ignore]

        made = Tokenizer.from_file(str(tokenizer))
    except Exception:  # the package raises bare Exception for a file it can't read
        return None
    made.no_truncation()
    made.no_padding()
    return lambda text: len(made.encode(text, add_special_tokens=False).ids)


def _length(parts: list[str], count: Callable[[str], int] | None) -> tuple[int, int]:
    if count is not None:
        tokens = sum(count(part) for part in parts)
        return tokens, tokens
    bounds = [estimate(part) for part in parts]
    return sum(low for low, _ in bounds), sum(high + TURN for _, high in bounds)


def estimate(text: str) -> tuple[int, int]:
    """Between how many tokens a text has, whatever the vocabulary of a language model."""
    collapsed = len(" ".join(text.split()))
    if text.isascii():
        return int(collapsed / FEWEST), int(len(text) / MOST) + 1
    cjk = len(CJK.findall(text))
    other = len(OTHER.findall(text))
    low = (collapsed - cjk) / FEWEST + cjk / CJK_FEWEST
    high = (len(text) - cjk - other) / MOST + cjk / CJK_MOST + other / OTHER_MOST
    return int(low), int(high) + 1


def _texts(row: object, columns: Sequence[str]) -> Iterator[list[str]]:
    """The training samples that a row makes (a preference pair makes two), each as its parts."""
    match row:
        case str():
            yield [row]
        case list() if row and isinstance(row[0], dict):
            yield _said(row)
        case dict():
            yield from _shaped(row, columns)


def _shaped(row: dict[object, object], columns: Sequence[str]) -> Iterator[list[str]]:
    if columns and all(name in row for name in columns):
        yield [part for name in columns for part in _said(row[name])]
        return
    for name in CONVERSATIONS:
        if isinstance(row.get(name), list):
            yield _said(row.get("system")) + _said(row[name])
            return
    for pair in CHOICES:
        if all(row.get(name) for name in pair):
            before = row.get("prompt") or [row.get("instruction"), row.get("input"), row.get("question")]
            for name in pair:
                answer = row[name]
                repeats = isinstance(answer, list) and answer[:1] == before
                yield ([] if repeats or _opens(answer, before) else _said(before)) + _said(answer)
            return
    for names in JOINED:
        if names[-1] in row and names[-2] in row and any(row.get(name) for name in names):
            yield [part for name in names for part in _said(row.get(name))]
            return
    for name in ALONE:
        if isinstance(row.get(name), str | list):
            yield _said(row[name])
            return


def _opens(answer: object, before: object) -> bool:
    """Whether an answer is a whole conversation that starts with the prompt already."""
    if isinstance(answer, list) and len(answer) > 1 and isinstance(answer[0], dict):
        return answer[0].get("role", answer[0].get("from")) in ("user", "system", "human")
    return isinstance(answer, str) and isinstance(before, str) and bool(before) and answer.startswith(before)


def _said(value: object) -> list[str]:
    """The texts of a value: a string, messages in the role/content or from/value form, parts, or lists of those."""
    match value:
        case str():
            return [value] if value else []
        case list():
            return [part for item in value for part in _said(item)]
        case dict():
            for name in ("content", "value", "text"):
                if value.get(name):
                    return _said(value[name]) + _called(value)
            return _called(value)
        case _:
            return []


def _called(message: dict[object, object]) -> list[str]:
    calls = message.get("tool_calls")
    return [json.dumps(calls, ensure_ascii=False, default=str)] if calls else []
