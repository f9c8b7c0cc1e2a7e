from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainlint import fix
from trainlint.documents import Mapping, Place, from_bytes
from trainlint.errors import TrainlintError
from trainlint.rule import Edit, Finding, Fix, remove_line, rename_key, set_value


def found(*edits: Edit, safety: str = "safe", rule: str = "a-b") -> Finding:
    place = edits[0].place if edits else Place("f")
    return Finding(rule, "error", "m", place, fix=Fix(edits, safety))  # type: ignore[arg-type]


def edit(line: int, column: int, end_column: int, text: str, file: str = "f") -> Edit:
    return Edit(Place(file, line, column, line, end_column), text)


def test_edits_of_several_fixes_are_applied_together() -> None:
    done = fix.apply({"f": "a: 1\nb: 2\n"}, [found(edit(1, 4, 5, "10")), found(edit(2, 1, 2, "c"))])
    assert done.texts == {"f": "a: 10\nc: 2\n"}
    assert len(done.applied) == 2


def test_unsafe_fixes_want_to_be_asked_for() -> None:
    findings = [found(edit(1, 4, 5, "10"), safety="unsafe")]
    assert fix.apply({"f": "a: 1"}, findings).texts == {}
    assert fix.apply({"f": "a: 1"}, findings, unsafe=True).texts == {"f": "a: 10"}


def test_of_overlapping_fixes_the_first_wins_and_the_other_waits() -> None:
    first, second = found(edit(1, 4, 6, "x")), found(edit(1, 5, 7, "y"), edit(2, 1, 2, "z"))
    done = fix.apply({"f": "a: 123\nb\n"}, [first, second])
    assert done.texts == {"f": "a: x3\nb\n"}
    assert done.applied == (first,)
    assert done.waiting == (second,)


def test_equal_fixes_are_one() -> None:
    done = fix.apply({"f": "a: 1"}, [found(edit(1, 4, 5, "2")), found(edit(1, 4, 5, "2"), rule="c-d")])
    assert done.texts == {"f": "a: 2"}
    assert len(done.applied) == 2


def test_insertions_at_one_point_do_not_mix() -> None:
    done = fix.apply({"f": "ab"}, [found(edit(1, 2, 2, "x")), found(edit(1, 2, 2, "y"))])
    assert done.texts == {"f": "axb"}


def test_a_fix_of_two_files_is_all_or_nothing() -> None:
    both = found(edit(1, 1, 2, "x"), edit(1, 1, 2, "y", "g"))
    assert fix.apply({"f": "a", "g": "b"}, [both]).texts == {"f": "x", "g": "y"}
    assert fix.apply({"f": "a"}, [both]).texts == {}
    assert fix.apply({"f": "a", "g": ""}, [both]).texts == {}


def test_byte_order_mark_and_line_ends_stay() -> None:
    done = fix.apply({"f": "\ufeffa: 1\r\nb: 2\r\n"}, [found(edit(1, 1, 2, "c")), found(edit(2, 4, 5, "3\nd: 4"))])
    assert done.texts == {"f": "\ufeffc: 1\r\nb: 3\r\nd: 4\r\n"}


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_fixes_made_from_a_document_fit_its_file(newline: str, mark: str) -> None:
    text = mark + newline.join(["lr: 1e-4  # ü", "steps: 5", "old: x", ""])
    document = from_bytes("f", text.encode(), "yaml")
    root = document.roots[0]
    assert isinstance(root, Mapping)
    lr, steps, old = root.entries
    removal = remove_line(document, steps)
    assert removal is not None
    findings = [Finding("a-b", "error", "m", Place("f"), fix=one) for one in (set_value(lr.value, "2e-5"), removal)]
    findings.append(Finding("a-b", "error", "m", Place("f"), fix=rename_key(old, "new")))
    done = fix.apply({"f": text}, findings, unsafe=True)
    assert done.texts["f"] == mark + newline.join(["lr: 2e-5  # ü", "new: x", ""])


def test_the_last_line_goes_without_its_end() -> None:
    done = fix.apply({"f": "a: 1\nb: 2"}, [found(Edit(Place("f", 2, 1, 3, 1), ""))])
    assert done.texts == {"f": "a: 1\n"}


def test_places_outside_the_text_are_left_alone() -> None:
    for place in (Place("f", 9), Place("f", 1, 9, 1, 10), Place("f", 0, 1, 1, 1), Place("f", 1, 2, 1, 1)):
        assert fix.apply({"f": "abc\n"}, [found(Edit(place, "x"))]).texts == {}


@given(st.text(alphabet="ab\n", max_size=30), st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9))))
def test_replacing_by_the_same_text_changes_nothing(text: str, spots: list[tuple[int, int]]) -> None:
    lines = text.split("\n")
    edits = []
    for line, column in spots:
        if line <= len(lines) and column <= len(lines[line - 1]):
            edits.append(found(edit(line, column, column + 1, lines[line - 1][column - 1])))
    done = fix.apply({"f": text}, edits)
    assert done.texts == {}
    assert len(done.applied) == len(edits)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize(
    ("before", "after"), [("a\nb\nc", "a\nx\nc"), ("a\n", "a"), ("a", "b\n"), ("a\r\nb\r\n", "a\r\nc\r\n"), ("", "x\n")]
)
def test_git_applies_the_diff(tmp_path: Path, before: str, after: str) -> None:
    (tmp_path / "f.yaml").write_bytes(before.encode())
    patch = fix.diff("f.yaml", before, after)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    command = ["git", "apply", "--whitespace=nowarn", "--unidiff-zero", "-"]
    subprocess.run(command, cwd=tmp_path, input=patch.encode(), check=True)
    assert (tmp_path / "f.yaml").read_bytes() == after.encode()


def test_no_change_no_diff() -> None:
    assert fix.diff("f", "a\n", "a\n") == ""


def test_writing_keeps_mode_and_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.yaml", tmp_path / "link.yaml"
    real.write_text("a")
    real.chmod(0o640)
    link.symlink_to(real)
    fix.write(str(link), "\ufeffb\r\n")
    assert link.is_symlink()
    assert real.read_bytes() == b"\xef\xbb\xbfb\r\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.yaml", "real.yaml"]
    assert fix.read(str(real)) == "\ufeffb\r\n"


def test_what_can_not_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(TrainlintError, match=r"can not write `.*gone.yaml`: no such file"):
        fix.write(str(tmp_path / "gone.yaml"), "x")
    with pytest.raises(TrainlintError, match=r"can not read `.*gone.yaml`"):
        fix.read(str(tmp_path / "gone.yaml"))


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everything")
def test_a_read_only_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a")
    path.chmod(0o444)
    with pytest.raises(TrainlintError, match="permission denied"):
        fix.write(str(path), "b")
    assert path.read_text() == "a"
