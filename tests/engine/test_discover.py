from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from trainlint.discover import discover
from trainlint.errors import TrainlintError
from trainlint.ignored import patterns


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fill(folder: Path, *names: str, **texts: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a: 1\n")


def test_folders_are_walked_for_config_names(here: Path) -> None:
    fill(
        here, "b.yaml", "a/z.json", "a/c.toml", "t.py", "run.sh", "data.csv", "README.md", "model.safetensors", "x.YML"
    )
    assert discover(["."]).files == ["a/c.toml", "a/z.json", "b.yaml", "run.sh", "t.py", "x.YML"]
    assert discover([]).files == discover(["./"]).files == discover(["."]).files
    assert discover(["./a/"]).files == ["a/c.toml", "a/z.json"]


def test_names_are_shown_as_they_were_given(here: Path) -> None:
    fill(here, "a/c.yaml")
    assert discover([str(here)]).files == [f"{here}/a/c.yaml"]
    assert discover(["a/../a"]).files == ["a/c.yaml"]


def test_named_files_are_always_taken_and_once(here: Path) -> None:
    fill(here, "notes.txt", "build/a.yaml", "b.yaml")
    assert discover(["notes.txt", "build/a.yaml"], ["*.txt"]).files == ["notes.txt", "build/a.yaml"]
    assert discover(["b.yaml", ".", "./b.yaml"]).files == ["b.yaml"]
    assert discover(["build"]).files == ["build/a.yaml"]


def test_excluded_named_files_can_be_left_out(here: Path) -> None:
    fill(here, "old/a.yaml", "b.yaml")
    assert discover(["old/a.yaml", "b.yaml"], ["old/"], force_exclude=True).files == ["b.yaml"]


def test_a_path_that_does_not_exist_is_a_usage_error(here: Path) -> None:
    with pytest.raises(TrainlintError, match="no such file or folder: gone"):
        discover(["gone"])


def test_folders_of_tools_are_left_out(here: Path) -> None:
    fill(here, "a.yaml", ".git/b.yaml", "x/node_modules/c.json", ".venv/d.py", "venv/e.py", "wandb/f.yaml")
    assert discover(["."]).files == ["a.yaml"]


def test_exclude_is_relative_to_its_settings(here: Path) -> None:
    fill(here, "sub/old/a.yaml", "sub/b.yaml", "old/c.yaml", "sub/d.json")
    assert discover(["."], ["/sub/old", "*.json"]).files == ["old/c.yaml", "sub/b.yaml"]
    assert discover(["."], ["/old"], here / "sub").files == ["old/c.yaml", "sub/b.yaml", "sub/d.json"]
    assert discover(["."], ["old/**"]).files == ["sub/b.yaml", "sub/d.json", "sub/old/a.yaml"]


def test_gitignore_holds_below_its_folder_and_the_nearer_wins(here: Path) -> None:
    fill(here, "a.yaml", "out/b.yaml", "sub/out/c.yaml", "sub/keep.json", "sub/other.json", "sub/deep/gone.yaml")
    (here / ".gitignore").write_text("out/\n*.json\n")
    (here / "sub" / ".gitignore").write_text("!keep.json\ngone.yaml\n")
    assert discover(["."]).files == ["a.yaml", "sub/keep.json"]
    assert "out/b.yaml" in discover(["."], gitignore=False).files


def test_gitignore_of_the_repository_holds_when_only_a_part_is_linted(here: Path) -> None:
    fill(here, "sub/a.yaml", "sub/b.json", "sub/secret.yaml")
    (here / ".git" / "info").mkdir(parents=True)
    (here / ".git" / "info" / "exclude").write_text("secret.*\n")
    (here / ".gitignore").write_text("sub/*.json\n")
    assert discover(["sub"]).files == ["sub/a.yaml"]
    assert discover(["sub/b.json"]).files == ["sub/b.json"]


def test_links_do_not_lead_in_circles(here: Path) -> None:
    fill(here, "a/b.yaml")
    (here / "a" / "loop").symlink_to(here)
    (here / "a" / "linked.yaml").symlink_to(here / "a" / "b.yaml")
    (here / "a" / "dangling.yaml").symlink_to(here / "gone.yaml")
    (here / "a" / "self.yaml").symlink_to(here / "a" / "self.yaml")
    assert discover(["."]).files == ["a/b.yaml", "a/linked.yaml"]
    (here / "there").symlink_to(here / "a")
    assert discover(["there"]).files == ["there/b.yaml", "there/linked.yaml"]
    os.mkfifo(here / "pipe.yaml")
    assert "pipe.yaml" not in discover(["."]).files


def test_a_folder_that_can_not_be_read_is_a_problem(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(here, "a.yaml", "locked/b.yaml")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = discover(["."])
    assert found.files == ["a.yaml"]
    (document,) = found.problems
    assert document.file == "locked"
    assert document.problems[0][:2] == ("unreadable", "permission denied")


PATTERNS = r"""
*.log
build
/top.yaml
docs/*.md
**/cache
a/**/z.txt
tree/**
only/
!keep.log
\!bang
\#hash
# comment
sp ace.txt
trail.txt@@@
kept\@
[ab].py
[!c].rs
x?z
a\*b
deep/er/
*.[oa]
""".replace("@", " ")
NAMES = """
x.log
keep.log
sub/x.log
sub/keep.log
build
sub/build
top.yaml
sub/top.yaml
docs/a.md
docs/sub/a.md
sub/docs/a.md
cache
q/cache
a/z.txt
a/b/z.txt
a/b/c/z.txt
b/a/z.txt
tree/x
tree/y/z
only
sub/only
!bang
#hash
comment
sp ace.txt
trail.txt
a.py
c.py
c.rs
d.rs
xyz
xz
a*b
aab
deep/er
lib.o
lib.a
lib.so
""".strip().splitlines()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_patterns_mean_what_git_means(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text(PATTERNS)
    command = ["git", "check-ignore", "--no-index", "-z", "--stdin"]
    said = subprocess.run(command, cwd=tmp_path, input="\0".join(NAMES), text=True, capture_output=True, check=False)
    ours = patterns("/base", PATTERNS.splitlines())

    def left_out(name: str) -> bool:
        parts = name.split("/")
        above = ["/".join(parts[:at]) for at in range(1, len(parts))]
        return any(ours.ignores(f"/base/{one}", True) for one in above) or ours.ignores(f"/base/{name}", False) is True

    assert [name for name in NAMES if left_out(name)] == said.stdout.strip("\0").split("\0")


def test_patterns_speak_only_of_what_lies_below_them() -> None:
    ours = patterns("/base", ["*"])
    assert ours.ignores("/base/a", False) is True
    assert ours.ignores("/other/a", False) is None
    assert ours.ignores("/base", True) is None
