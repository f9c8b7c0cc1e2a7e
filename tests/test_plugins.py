"""Plugins are found without importlib.metadata, and are those that it finds."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from trainlint.errors import TrainlintError
from trainlint.facts import store
from trainlint.plugins import PROJECT, declared, hookimpl, load
from trainlint.session import Toolbox


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


FACTS = """
import json, sys
from trainlint.facts import devices, store
store.add("devices", sys.argv[1])
store.add("devices", sys.argv[1])
found = devices.find("House Card 48GB")
print(json.dumps([found.name, found.memory, devices.find("RTX 4090") is not None]))
"""


def test_devices_that_a_plugin_brings_are_known(tmp_path: Path) -> None:
    entry = {"name": "House Card", "vendor": "house", "variants": [{"gb": 48, "mib": 49152, "source": "its maker"}]}
    path = tmp_path / "devices.json"
    path.write_text(json.dumps({"devices": [entry]}))
    done = subprocess.run([sys.executable, "-c", FACTS, str(path)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ["House Card", [48 << 30, 48 << 30], True]


@pytest.mark.parametrize(("name", "text"), [("devices", "[]"), ("devices", '{"devices": 3}'), ("cards", "{}")])
def test_facts_of_another_form_are_refused(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / "facts.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"belong here|there are facts of"):
        store.add(name, str(path))


def test_what_plugins_offer_as_facts_is_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Plugin:
        @hookimpl
        def trainlint_facts(self) -> dict[str, Path]:
            return {"devices": tmp_path / "absent.json"}

    manager = load()
    manager.register(Plugin())
    monkeypatch.setattr("trainlint.plugins.load", lambda: manager)
    with pytest.raises(TrainlintError, match=r"no facts of `devices`"):
        _ = Toolbox().manager
