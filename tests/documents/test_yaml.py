from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from trainlint.documents import Document, Mapping, Node, Scalar, Sequence, from_text, plain, scalars


def read(text: str) -> Document:
    return from_text("f.yaml", text, "yaml")


def root(text: str) -> Mapping:
    document = read(text)
    assert document.problems == ()
    (node,) = document.roots
    assert isinstance(node, Mapping)
    return node


def slice_of(document: Document, node: Node) -> str:
    """The text at a node's place."""
    _, line, column, end_line, end_column = node.place
    lines = document.text.split("\n")[line - 1 : end_line]
    lines[-1] = lines[-1][: end_column - 1]
    lines[0] = lines[0][column - 1 :]
    return "\n".join(lines)


def test_every_scalar_lies_where_its_raw_text_stands() -> None:
    text = "größe: 8 # ü\n模型: {ids: [a, 'b', \"ü\"], x: 1.5}\n? k\n: v\nlist:\n- 1\n-   two\n"
    document = read(text)
    (node,) = document.roots
    leaves = list(scalars(node))
    assert [path for path, _, _ in leaves] == [
        *("größe", "模型.ids[0]", "模型.ids[1]", "模型.ids[2]", "模型.x", "k", "list[0]", "list[1]")
    ]
    for _, entry, leaf in leaves:
        assert slice_of(document, leaf) == leaf.raw
        if entry is not None:
            assert slice_of(document, entry.key) == entry.key.raw
    assert [leaf.plain for _, _, leaf in leaves] == [True, True, False, False, True, True, True, True]


def test_columns_count_characters() -> None:
    entry = root("ключ: \N{GRINNING FACE}8\n").entry("ключ")
    assert entry is not None
    assert entry.value.place == ("f.yaml", 1, 7, 1, 9)


@pytest.mark.parametrize(
    "text",
    ["a: 1\nb: 0x1F\nc: 0o7\nd: 017\ne: 1_000\nf: 190:20:30\ng: 1e-5\nh: 1.0e-5\ni: .inf\nj: -.INF\nk: ~\nl:\n"
     "m: yes\nn: Off\no: 'yes'\np: 0b101\nq: +12\nr: -0\ns: 1.5e+3\nt: 20:30.5\nu: null\nv: .5\nw: 1.\nx: 0\ny: 08\n"],
)  # fmt: skip
def test_values_are_those_of_the_safe_loader(text: str) -> None:
    assert plain(root(text)) == yaml.safe_load(text)


def test_block_collections_end_with_their_last_item() -> None:
    text = "a:\n  b:\n    c: 1\n    d: [1,\n 2]\n\n  # more\n  e:\n  - x\n  - y: z\nf: 1\n"
    document = read(text)
    node = document.roots[0]
    assert isinstance(node, Mapping)
    b, e = node.find("a.b"), node.find("a.e")
    assert b is not None
    assert e is not None
    assert slice_of(document, b) == "c: 1\n    d: [1,\n 2]"
    assert slice_of(document, e) == "- x\n  - y: z"
    assert slice_of(document, node) == text.rstrip("\n")


def test_a_mapping_that_ends_with_an_alias_ends_behind_its_key() -> None:
    document = read("x: &x {k: 1}\ny:\n  a: 1\n  b: *x\nz: 1\n")
    node = document.roots[0]
    assert isinstance(node, Mapping)
    y = node.get("y")
    assert y is not None
    assert y.place[1:] == (3, 3, 4, 4)


def test_a_repeated_key_is_a_problem_and_the_last_counts() -> None:
    document = read("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n")
    assert [(problem.kind, problem.place.line) for problem in document.problems] == [
        ("duplicate-key", 4),
        ("duplicate-key", 5),
    ]
    first = document.problems[1].related
    assert first is not None
    assert first.line == 1
    assert plain(document.roots[0]) == {"a": 3, "b": {"c": 2}}


def test_merges_come_in_below_what_is_written() -> None:
    text = "base: &b {lr: 1, wd: 2}\nother: &o {lr: 5, eps: 6}\nrun:\n  lr: 3\n  <<: [*b, *o]\n"
    run = root(text).get("run")
    assert isinstance(run, Mapping)
    assert plain(run) == yaml.safe_load(text)["run"] == {"lr": 3, "wd": 2, "eps": 6}
    wd = run.entry("wd")
    assert wd is not None
    assert wd.merged
    assert wd.value.place.line == 1
    assert read(text).problems == ()


def test_several_documents() -> None:
    document = read("a: 1\n---\nb: 2\n...\n---\n- 3\n")
    assert [plain(node) for node in document.roots] == [{"a": 1}, {"b": 2}, [3]]
    assert document.roots[1].place.line == 3


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
def test_nothing_is_no_document(text: str) -> None:
    assert read(text).roots == ()
    assert read(text).problems == ()


def test_lines_end_as_on_any_system() -> None:
    for newline in ("\r\n", "\r"):
        document = read(newline.join(["a: 1", "b: 2", ""]))
        assert document.line(2) == "b: 2"
        assert document.roots[0].place[1:] == (1, 1, 2, 5)


def test_a_byte_order_mark_moves_nothing() -> None:
    document = read("\ufeffa: 1\n")
    assert [problem.kind for problem in document.problems] == ["byte-order-mark"]
    assert document.roots[0].place[1:3] == (1, 1)


def test_places_count_the_lines_of_editors() -> None:
    document = read("a: 1 # x\x85y\u2028z\nb: 1\nb: 2\n")
    (problem,) = document.problems
    assert problem.place.line == 3
    assert document.line(3) == "b: 2"


@pytest.mark.parametrize(
    ("text", "kind", "message", "place"),
    [
        ("a:\n\tb: 1\n", "syntax", "a tab where YAML wants spaces", (2, 1)),
        ("a: @x\n", "syntax", "`@` can not stand here without quotes", (1, 4)),
        ("a: [1\n", "syntax", "did not find expected", (2, 1)),
        ("é: ü\nb: é\x01\n", "syntax", "character U+0001 is not allowed in YAML", (2, 5)),
        ("a: *b\n", "syntax", "found undefined alias", (1, 4)),
        ("a: &a [*a]\n", "alias-bomb", "an alias that contains itself", (1, 4)),
        ("a: &a\n  <<: *a\n", "alias-bomb", "an alias that contains itself", (1, 4)),
        ("[" * 5000, "too-deep", "nested deeper than 100 levels", (1, 1001)),
        ("- " * 5000, "too-deep", "nested deeper than 100 levels", (1, 1999)),
        ("- " * 500 + "x", "too-deep", "nested deeper than 100 levels", (1, 201)),
        ("a: {{ x }}: y\n", "syntax", "", (1, 11)),
    ],
)
def test_what_can_not_be_read_is_a_problem_with_a_place(
    text: str, kind: str, message: str, place: tuple[int, int]
) -> None:
    document = read(text)
    assert document.roots == ()
    (problem,) = document.problems
    assert problem.kind == kind
    assert message in problem.message
    assert problem.place[1:3] == place


def test_a_billion_laughs_stay_small() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{name}: &{name} [{', '.join([f'*{below}'] * 10)}]" for below, name in zip("abcdefg", "bcdefgh", strict=True)
    ]
    (problem,) = read("\n".join(lines)).problems
    assert problem.kind == "alias-bomb"


def test_odd_tags_and_keys_do_no_harm() -> None:
    document = read('a: !!int ""\nb: !!float x\nc: !!python/object:os.system x\n? [k, l]\n: 1\n~: 2\n1: 3\n')
    node = document.roots[0]
    assert isinstance(node, Mapping)
    assert [entry.name for entry in node.entries] == ["a", "b", "c", "[k, l]", "~", "1"]
    assert plain(node) == {"a": "", "b": "x", "c": "x", "[k, l]": 1, "~": 2, "1": 3}


def test_long_numbers_stay_text() -> None:
    node = root(f"a: {'1' * 5000}\n").get("a")
    assert isinstance(node, Scalar)
    assert node.value == "1" * 5000


def test_the_pure_python_loader_reads_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from trainlint.documents import yaml as ours

    text = "a: [1, 'x']\nb:\n  c: |\n    t\n  d: &d 1\ne: *d\n---\nf: 1\n"
    before = [(path, leaf.place, leaf.raw) for node in read(text).roots for path, _, leaf in scalars(node)]
    monkeypatch.setattr(ours, "_Loader", yaml.SafeLoader)
    assert [(path, leaf.place, leaf.raw) for node in read(text).roots for path, _, leaf in scalars(node)] == before
    (problem,) = read("a: 1\nb: \x01\n").problems
    assert problem.place[1:3] == (2, 4)


def test_sequences_of_mappings() -> None:
    node = root("xs:\n- a: 1\n  b: 2\n- c: 3\n").get("xs")
    assert isinstance(node, Sequence)
    assert [item.place[1:] for item in node.items] == [(2, 3, 3, 7), (4, 3, 4, 7)]
