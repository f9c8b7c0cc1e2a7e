from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainlint.documents import Document, Mapping, from_text, plain, scalars

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(), below, max_size=4),
    max_leaves=20,
)


def read(text: str) -> Document:
    return from_text("f.json", text, "json")


@given(VALUES, st.sampled_from([None, 0, 2]), st.booleans())
def test_values_and_places_are_those_of_the_text(value: object, indent: int | None, escape: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=escape)
    document = read(text)
    lines = document.text.split("\n")
    assert document.problems == ()
    assert plain(document.roots[0]) == value
    for _, _, leaf in scalars(document.roots[0]):
        _, line, column, end_line, end_column = leaf.place
        assert line == end_line
        assert lines[line - 1][column - 1 : end_column - 1] == leaf.raw


def test_what_loaders_tolerate_is_noted() -> None:
    document = read('{\n  // one\n  "a": [1, 2,], /* two */\n  "a": NaN, # three\n}\n')
    assert [(problem.kind, *problem.place[1:3]) for problem in document.problems] == [
        ("json-comment", 2, 3),
        ("trailing-comma", 3, 13),
        ("json-comment", 3, 17),
        ("duplicate-key", 4, 3),
        ("json-comment", 4, 13),
        ("trailing-comma", 4, 11),
    ]
    node = document.roots[0]
    assert isinstance(node, Mapping)
    assert str(plain(node)) == "{'a': nan}"


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ('{"a": True}', "`True` is Python, JSON writes `true`", (1, 7)),
        ('{"a" 1}', "no `:` behind the key", (1, 6)),
        ("{a: 1}", "`a` where a key in double quotes belongs", (1, 2)),
        ('{"a": 1', "the file ends before `}`", (1, 8)),
        ('{"a":', "the file ends where a value belongs", (1, 6)),
        ('{"a": 1} x', "unexpected `x` behind the end of the value", (1, 10)),
        ('{"a": "b\n}', "a string that does not end on its line", (1, 7)),
        ("{'a': 1}", "unexpected `'`", (1, 2)),
        ('{"a": 1 "b": 2}', '`"b"` where `,` or `}` belongs', (1, 9)),
        ('{"a": 01}', "unexpected `0`", (1, 7)),
        ('{"a": yes}', "`yes` where a value belongs", (1, 7)),
        ('"\\x"', "bad string: ", (1, 1)),
        ("[" * 200, "nested deeper than 100 levels", (1, 101)),
    ],
)
def test_where_it_breaks_and_why(text: str, message: str, place: tuple[int, int]) -> None:
    (problem,) = read(text).problems
    assert message in problem.message
    assert problem.place[1:3] == place


def test_empty_and_odd_texts() -> None:
    assert read("").roots == ()
    assert read(" \n ").problems == ()
    assert plain(read("[1e400, " + "1" * 5000 + "]").roots[0]) == [float("inf"), float("inf")]
    assert plain(read('"\\ud800"').roots[0]) == "\ud800"
