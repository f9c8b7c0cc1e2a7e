from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainlint.documents import Document, Mapping, Sequence, from_text, plain, scalars

TEXT = '''\
# comment
title = "ü # no comment"
"quoted key" = 1_000
dotted.a.b = 0x1F
site."google.com" = true
multi = """
one "quoted" \\
two"""
literal = \'\'\'it's\'\'\'
empty = ""
arr = [ 1, 2, # here
  [ "x", 'y' ],
]
when = 1979-05-27 07:32:00Z
inline = { a = 1, b.c = [ { d = 2.5e-3 } ] }
quotes = """a""""

[table]
x = inf
[table.sub]
y = 1

[[runs]]
name = "a"
[runs.opt]
lr = 1e-4
[[runs]]
name = "b"
[[runs.steps]]
n = 1
[[runs.steps]]
n = 2
'''


def read(text: str) -> Document:
    return from_text("f.toml", text, "toml")


def test_values_are_those_of_tomllib() -> None:
    document = read(TEXT)
    assert document.problems == ()
    expected = tomllib.loads(TEXT)
    expected["when"] = str(expected["when"])
    assert plain(document.roots[0]) == expected


def test_every_scalar_lies_where_its_raw_text_stands() -> None:
    document = read(TEXT)
    seen = {}
    for path, entry, leaf in scalars(document.roots[0]):
        _, line, column, end_line, end_column = leaf.place
        lines = TEXT.split("\n")[line - 1 : end_line]
        lines[-1] = lines[-1][: end_column - 1]
        lines[0] = lines[0][column - 1 :]
        assert "\n".join(lines) == leaf.raw
        seen[path] = leaf.raw
        if entry is not None:
            key = entry.key
            assert TEXT.split("\n")[key.place.line - 1][key.place.column - 1 : key.place.end_column - 1] == key.raw
    assert seen["dotted.a.b"] == "0x1F"
    assert seen["inline.b.c[0].d"] == "2.5e-3"
    assert seen["runs[1].steps[1].n"] == "2"
    assert seen["when"] == "1979-05-27 07:32:00Z"
    assert seen["quotes"] == '"""a""""'


def test_arrays_of_tables_are_lists() -> None:
    node = read(TEXT).roots[0]
    assert isinstance(node, Mapping)
    runs = node.get("runs")
    assert isinstance(runs, Sequence)
    assert [item.place.line for item in runs.items] == [23, 27]


@pytest.mark.parametrize(
    ("text", "kind", "message", "place"),
    [
        ("a = 1\na = 2\n", "syntax", "cannot overwrite a value", (2, 6)),
        ("a = \n", "syntax", "bad value", (1, 5)),
        ("a = [1", "syntax", "unclosed array at the end of the file", (1, 1)),
        ("= 1", "syntax", "", (1, 1)),
        (f"a = {'1' * 5000}", "syntax", "a number of too many digits", (1, 1)),
        (f"a = {'[' * 150}{']' * 150}", "too-deep", "nested deeper than 100 levels", (1, 105)),
        (f"a = {'[' * 3000}", "too-deep", "nested deeper than 100 levels", (1, 1)),
        (".".join("a" * 3000) + " = 1", "too-deep", "nested deeper than 100 levels", (1, 1)),
    ],
)
def test_what_can_not_be_read_is_a_problem_with_a_place(
    text: str, kind: str, message: str, place: tuple[int, int]
) -> None:
    (problem,) = read(text).problems
    assert problem.kind == kind
    assert message in problem.message
    assert problem.place[1:3] == place


KEYS = st.sampled_from(["a", "b-c", '"d e"', "'f.g'", '"\\u00fc"'])
LEAVES = st.sampled_from(
    ["1", "-2.5", "true", "nan", '"x"', "'y#'", '"""m\nn"""', "'''o\n'p'''", "07:32:00", "1979-05-27", "0b1", '"\\""']
)
NODES = st.recursive(
    LEAVES,
    lambda below: (
        st.lists(below, max_size=3).map(lambda items: "[" + ", # c\n ".join(items) + "\n]")
        | st.dictionaries(KEYS, below, max_size=3).map(
            lambda items: "{ " + ", ".join(f"{key} = {value}" for key, value in items.items()) + " }"
        )
    ),
    max_leaves=8,
)
TABLES = st.lists(st.tuples(KEYS, KEYS, st.dictionaries(KEYS, NODES, max_size=3)), max_size=3)


@given(st.dictionaries(KEYS, NODES, max_size=4), TABLES)
def test_whatever_tomllib_reads_is_located(top: dict[str, str], tables: list[tuple[str, str, dict[str, str]]]) -> None:
    lines = [f"{key} = {value}" for key, value in top.items()]
    for first, second, entries in tables:
        lines += [f"[t.{first} . {second}]", *(f"{key} = {value}" for key, value in entries.items())]
    text = "\n".join(lines) + "\n"
    document = read(text)
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assert document.problems
        return
    assert document.problems == ()
    for _, _, leaf in scalars(document.roots[0]):
        assert text.split("\n")[leaf.place.line - 1][leaf.place.column - 1 :].startswith(leaf.raw.split("\n")[0])
