"""Plugins are found without importlib.metadata, and are those that it finds."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from pathlib import Path

from trainlint.plugins import PROJECT, declared


def distribution(folder: Path, name: str, text: str) -> str:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "entry_points.txt").write_text(text)
    return str(folder)


def test_what_is_installed_is_what_importlib_metadata_finds() -> None:
    assert declared(sys.path) == {entry.name: entry.value for entry in entry_points(group=PROJECT)}


def test_modules_of_our_group_alone_are_read(tmp_path: Path) -> None:
    text = "[console_scripts]\nx = y:z\n\n[trainlint]\nmine = my_rules.plugin\nmore = other\n\n[pytest11]\na = b\n"
    assert declared([distribution(tmp_path, "mine", text)]) == {"mine": "my_rules.plugin", "more": "other"}


def test_the_first_on_the_path_counts(tmp_path: Path) -> None:
    first = distribution(tmp_path / "a", "mine", "[trainlint]\nmine = new\n")
    second = distribution(tmp_path / "b", "mine", "[trainlint]\nmine = old\n")
    assert declared([first, second, str(tmp_path / "absent")]) == {"mine": "new"}


def test_what_takes_more_to_tell_is_left_to_the_library(tmp_path: Path) -> None:
    archive = tmp_path / "plugin.zip"
    archive.write_bytes(b"")
    assert declared([str(archive)]) is None
    assert declared([distribution(tmp_path / "in", "mine", "[trainlint]\nmine = module:attribute\n")]) is None
