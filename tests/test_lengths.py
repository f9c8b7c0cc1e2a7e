"""Lengths of samples in data files: shapes, percentiles, bounds, and what can't be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainlint import rows
from trainlint.lengths import Lengths, estimate, measure, obstacle

PROSE = "The reader sees how long a sample is before anything is trained on it. "
ASKED = "How long is it, then, and does the end of it still fit in the window? "


def jsonl(path: Path, *made: object) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in made), "utf-8")
    return path


def lengths(path: Path, **rest: object) -> Lengths:
    found = measure(path, **rest)  # type: ignore[arg-type]
    assert found is not None, obstacle(path)
    return found


SHAPES: dict[str, object] = {
    "text": {"text": PROSE * 10},
    "messages": {"messages": [{"role": "user", "content": PROSE * 4}, {"role": "assistant", "content": PROSE * 6}]},
    "parts": {"messages": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": PROSE * 10}]}]},
    "sharegpt": {"conversations": [{"from": "human", "value": PROSE * 4}, {"from": "gpt", "value": PROSE * 6}]},
    "alpaca": {"instruction": PROSE * 3, "input": "", "output": PROSE * 7},
    "alpaca-without-input": {"instruction": PROSE * 3, "output": PROSE * 7},
    "prompt-completion": {"prompt": PROSE * 3, "completion": PROSE * 7},
    "prompt-response": {"prompt": PROSE * 3, "response": PROSE * 7, "source": "web"},
    "conversational-completion": {
        "prompt": [{"role": "user", "content": PROSE * 3}],
        "completion": [{"role": "assistant", "content": PROSE * 7}],
    },
    "preference": {"prompt": ASKED * 3, "chosen": PROSE * 7, "rejected": PROSE},
    "preference-worse-longer": {"prompt": ASKED * 3, "chosen": PROSE, "rejected": PROSE * 7},
    "preference-whole": {"prompt": PROSE * 3, "chosen": PROSE * 10, "rejected": PROSE * 4},
    "sharegpt-preference": {
        "conversations": [{"from": "human", "value": PROSE * 10}],
        "chosen": {"from": "gpt", "value": PROSE},
    },
    "bare": PROSE * 10,
    "bare-messages": [{"role": "user", "content": PROSE * 10}],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_joined_sample(tmp_path: Path, shape: str) -> None:
    found = lengths(jsonl(tmp_path / "data.jsonl", SHAPES[shape], SHAPES[shape]))
    low, high = found.tokens["p50"]
    assert (found.rows, found.rows_exact, found.sample, found.exact) == (2, True, 2, False)
    assert 0.7 * len(PROSE) * 10 / 5.5 <= low <= len(PROSE) * 10 / 4.5 < high


def test_a_pair_counts_its_longer_answer(tmp_path: Path) -> None:
    one = lengths(jsonl(tmp_path / "one.jsonl", SHAPES["preference"]))
    other = lengths(jsonl(tmp_path / "other.jsonl", SHAPES["preference-worse-longer"]))
    assert one.tokens == other.tokens


def test_tokenized_rows_are_exact(tmp_path: Path) -> None:
    found = lengths(jsonl(tmp_path / "data.jsonl", *({"input_ids": [0] * size} for size in range(1, 101))))
    assert found.exact
    assert found.tokens == {"p50": (50, 50), "p90": (90, 90), "p95": (95, 95), "max": (100, 100)}


def test_named_columns_make_the_sample(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "data.jsonl", {"article": PROSE * 10, "highlights": PROSE})
    assert measure(file) is None
    assert "article, highlights" in obstacle(file)
    assert lengths(file, columns=["article", "highlights"]).tokens["p50"][0] > 100


def test_chinese_is_counted_apart() -> None:
    low, high = estimate("模型在训练之前就应该知道显存够不够" * 10)
    assert 170 / 2.5 <= low <= 170 / 1.7
    assert high >= 170
    assert estimate("a" * 170)[0] < low


def test_indentation_does_not_make_a_sample_longer() -> None:
    assert estimate("return 1\n" + " " * 400 + "pass")[0] <= 3


@given(st.text())
def test_the_low_bound_is_below_the_high_one(text: str) -> None:
    low, high = estimate(text)
    assert 0 <= low <= high


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("array.json", json.dumps([SHAPES["text"]] * 3), 3),
        ("array.json", json.dumps([SHAPES["text"]] * 3, indent=2), 3),
        ("nested.json", json.dumps({"version": 1, "data": [SHAPES["text"]] * 3}), 3),
        ("columns.json", json.dumps({"prompt": ["a", "b"], "completion": ["c", "d"]}), 2),
        ("lines.json", "\n".join([json.dumps(SHAPES["text"])] * 3), 3),
        ("mark.json", "\ufeff" + json.dumps([SHAPES["text"]]), 1),
        ("blank.jsonl", "\n\n" + json.dumps(SHAPES["text"]) + "\n\n\n", 1),
        ("table.csv", 'instruction,output\n"a, b","c\nd"\ne,f\n', 2),
        ("table.tsv", "prompt\tcompletion\na\tb\n", 1),
    ],
)
def test_rows_are_found_in_every_container(tmp_path: Path, name: str, text: str, count: int) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    found = lengths(tmp_path / name)
    assert (found.rows, found.rows_exact) == (count, True)


def test_bad_rows_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "data.jsonl"
    good = json.dumps(SHAPES["text"])
    file.write_bytes(b"\n".join([good.encode()] * 5 + [b"{broken", b"\xff\xfe", b"[" * 100_000]))
    found = lengths(file)
    assert found.sample == 5
    assert found.note.startswith("5 of 8 rows")


@pytest.mark.parametrize(
    ("name", "raw", "reason"),
    [
        ("data.txt", b"text", "no data file"),
        ("data.jsonl", b"", "no line of it is JSON"),
        ("data.json", b"{", "not JSON"),
        ("data.json", b"[}", "no row"),
        ("data.json", b'{"a": 1}', "rows were not found"),
        ("data.csv", b"", "no row"),
        ("data.json", b"[1, 2, 3]", "no known shape"),
        ("data.jsonl", b"\x00" * 5000, "no line of it is JSON"),
    ],
)
def test_what_can_not_be_read_has_a_reason(tmp_path: Path, name: str, raw: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(raw)
    assert measure(tmp_path / name) is None
    assert reason in obstacle(tmp_path / name)


def test_a_missing_file_has_a_reason(tmp_path: Path) -> None:
    assert measure(tmp_path / "data.jsonl") is None
    assert obstacle(tmp_path / "data.jsonl") == "there is no such file"
    assert obstacle(tmp_path) == "there is no such file"


def test_a_large_file_is_sampled_all_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "BUDGET", 64 << 10)
    made = [{"text": "word " * (10 if number % 10 else 1000)} for number in range(3000)]
    found = lengths(jsonl(tmp_path / "data.jsonl", *made))
    assert (found.rows, found.rows_exact) == (3000, True)
    assert 50 < found.sample <= rows.SAMPLE
    assert found.tokens["p50"][0] < 20 < 500 < found.tokens["max"][0]
    monkeypatch.setattr(rows, "COUNTED", 0)
    estimated = lengths(tmp_path / "data.jsonl")
    assert not estimated.rows_exact
    assert estimated.rows == pytest.approx(3000, rel=0.4)


def test_the_head_of_a_large_array_is_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "BUDGET", 16 << 10)
    (tmp_path / "data.json").write_text(json.dumps([SHAPES["text"]] * 500), "utf-8")
    found = lengths(tmp_path / "data.json")
    assert not found.rows_exact
    assert found.rows == pytest.approx(500, rel=0.05)


def test_a_tokenizer_counts_exactly(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"word": 0, "[UNK]": 1}, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    found = lengths(jsonl(tmp_path / "data.jsonl", {"text": "word " * 7}), tokenizer=tmp_path)
    assert found.exact
    assert found.tokens["max"] == (7, 7)


def test_a_broken_tokenizer_leaves_the_estimate(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{", "utf-8")
    assert not lengths(jsonl(tmp_path / "data.jsonl", SHAPES["text"]), tokenizer=tmp_path).exact


def test_parquet_needs_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "data.parquet").write_bytes(b"PAR1")
    assert measure(tmp_path / "data.parquet") is None
    assert "trainlint[parquet]" in obstacle(tmp_path / "data.parquet")


def test_parquet_is_read(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = arrow.Table.from_pylist([{"text": PROSE * 10}] * 20)
    parquet.write_table(table, tmp_path / "data.parquet", row_group_size=4)
    found = lengths(tmp_path / "data.parquet")
    assert (found.rows, found.rows_exact) == (20, True)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing more")
    assert measure(tmp_path / "broken.parquet") is None
