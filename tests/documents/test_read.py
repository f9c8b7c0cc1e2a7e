"""Files and texts of any kind: nothing raises, whatever is wrong has a place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trainlint.documents import SIZE_LIMIT, Document, Syntax, from_bytes, from_text, plain, read, scalars, syntax_of

SYNTAXES: tuple[Syntax, ...] = ("yaml", "json", "toml", "python", "shell", "text")
PIECES = st.sampled_from(
    [
        *"[]{}:,-?&*!|>'\"%@`#\n\t =.\\0a\u00e9",
        *(
            "<<: ",
            "*a",
            "&a ",
            "---\n",
            "a: ",
            "\n  ",
            '"""',
            "true",
            "1e3",
            "//",
            "/*",
            "[[",
            "]]",
            "!!int ",
            "def f(:",
        ),
        *("# trainlint: ignore[a] b", "\r\n", "\u2028", "\ufeff", "\x00", "\ud800"),
    ]
)


def check(document: Document) -> None:
    lines = document.text.split("\n")
    for problem in document.problems:
        assert problem.place.line >= 1
        assert problem.place.column >= 1
        assert problem.message
    for comment in document.comments:
        assert lines[comment.place.line - 1][comment.place.column - 1] == "#"
    for root in document.roots:
        plain(root)
        for _, _, leaf in scalars(root):
            assert (leaf.place.line, leaf.place.column) <= (leaf.place.end_line, leaf.place.end_column)
            assert leaf.place.line <= len(lines) + 1  # libyaml ends every last line


@pytest.mark.parametrize("syntax", SYNTAXES)
@given(text=st.text() | st.lists(PIECES, max_size=30).map("".join))
@example(text="a: 1\r\rb: 2")
def test_no_text_raises(syntax: Syntax, text: str) -> None:
    check(from_text("f", text, syntax))


@pytest.mark.parametrize("syntax", SYNTAXES)
@given(data=st.binary())
def test_no_bytes_raise(syntax: Syntax, data: bytes) -> None:
    check(from_bytes("f", data, syntax))


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (b"\xff\xfea\x00", "encoding", "UTF-16, not UTF-8"),
        (b"\xfe\xff\x00a", "encoding", "UTF-16, not UTF-8"),
        (b"PK\x03\x04\x00", "binary", "a binary file"),
        ("ä: 1\nb: ".encode() + b"\xe4", "encoding", "byte 0xe4 is not UTF-8"),
    ],
)
def test_other_encodings_are_named(data: bytes, kind: str, message: str) -> None:
    (problem,) = from_bytes("f", data, "yaml").problems
    assert (problem.kind, problem.message) == (kind, message)


def test_the_first_byte_that_is_wrong_has_a_place() -> None:
    (problem,) = from_bytes("f", "ä: 1\nb: ü".encode() + b"\xe4", "yaml").problems
    assert problem.place == ("f", 2, 5, 2, 6)


def test_large_files_are_data(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_bytes(b" " * SIZE_LIMIT)
    assert read(str(path)).problems == ()
    path.write_bytes(b" " * (SIZE_LIMIT + 1))
    (problem,) = read(str(path)).problems
    assert problem.kind == "too-large"
    assert problem.message == "2.1 MB is more than the 2 MiB a config may have"


def test_what_can_not_be_read_says_so(tmp_path: Path) -> None:
    (problem,) = read(str(tmp_path / "gone.yaml"), "gone.yaml").problems
    assert problem[:3] == ("unreadable", "no such file or directory", ("gone.yaml", 1, 1, 1, 1))
    (problem,) = read(str(tmp_path)).problems
    assert problem.message == "not a regular file"
    os.mkfifo(tmp_path / "pipe.yaml")
    (problem,) = read(str(tmp_path / "pipe.yaml")).problems
    assert problem.message == "not a regular file"


def test_a_file_without_permission_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a: 1")

    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    (problem,) = read(str(path)).problems
    assert (problem.kind, problem.message) == ("unreadable", "permission denied")


def test_lines_end_where_editors_end_them() -> None:
    assert from_text("f", "a\x0cb\x85c\u2028d\ne", "text").line(2) == "e"


def test_names_promise_a_syntax() -> None:
    assert [
        syntax_of(name)
        for name in ("a.YML", "a.json", "x/a.toml", "a.py", "a.slurm", "x/Makefile", "a.txt", "Dockerfile")
    ] == [*("yaml", "json", "toml", "python", "shell", "text", None, None)]


def test_scripts_have_a_tree_or_a_problem() -> None:
    assert from_text("f.py", "x = 1\n", "python").module is not None
    (problem,) = from_text("f.py", "é = (\n", "python").problems
    assert (problem.kind, problem.place[1:3]) == ("syntax", (1, 5))
    assert from_text("f.py", "-" * 100_000 + "1", "python").problems[0].kind == "too-deep"
    assert from_text("f.py", "x" + ".a" * 20_000, "python").problems[0].kind == "too-deep"


@pytest.mark.parametrize(
    ("syntax", "text", "found"),
    [
        ("yaml", "a: 1 # x # trainlint: y\n", [("y", 1, 10, False)]),
        ("yaml", "  # trainlint: y  \na: 1", [("y", 1, 3, True)]),
        ("yaml", "a: |\n  # trainlint: y\nb: 1 # trainlint: z", [("z", 3, 6, False)]),
        ("yaml", "a: [1 # trainlint: z", [("z", 1, 7, False)]),
        ("toml", "a = '''\n# trainlint: y\n''' # trainlint: z", [("z", 3, 5, False)]),
        ("python", "s = '''\n# trainlint: y\n'''\nf(1,  # trainlint: z\n2)", [("z", 4, 7, False)]),
        ("python", "def f(:\n  pass # trainlint: z", [("z", 2, 8, False)]),
        ("shell", "# it's\na 'b\n# trainlint: y' # trainlint: z\n", [("z", 3, 17, False)]),
        ("shell", "echo a#trainlint: x\\# $# # trainlint: z", [("z", 1, 26, False)]),
        ("json", '{"a": 1} # trainlint: z', []),
        ("text", "torch # trainlint: z\n", [("z", 1, 7, False)]),
    ],
)
def test_comments_for_the_linter(syntax: Syntax, text: str, found: list[tuple[str, int, int, bool]]) -> None:
    document = from_text("f", text, syntax)
    assert [(one.text, one.place.line, one.place.column, one.alone) for one in document.comments] == found
