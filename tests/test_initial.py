from __future__ import annotations

from pathlib import Path

import pytest

from trainlint.errors import TrainlintError
from trainlint.initial import settings_text, write_settings
from trainlint.settings import load, nearest

from .workspace import RUN, Project, project

__all__ = ["project"]


def test_what_is_written_is_what_was_seen(project: Project) -> None:
    project.write({"a.yaml": RUN + "device: RTX 4090\n", "b.yaml": RUN, "requirements.txt": "trl==0.9.6\ntorch>=2.6\n"})
    assert write_settings(Path()) == "wrote trainlint.toml: 2 training configs (trainlint-run), 2 runs"
    text = Path("trainlint.toml").read_text("utf-8")
    assert text.startswith("# Settings of trainlint. Found here: trainlint-run.\n")
    assert '\ndevice = "RTX 4090"\n' in text
    assert '# found in requirement and lock files: torch = ">=2.6", trl = "0.9.6"' in text
    settings = load(Path("trainlint.toml"))
    assert settings is not None
    assert settings.device is not None
    assert settings.device.value == "RTX 4090"
    assert (settings.select, settings.ignore, settings.fail_on) == (("ALL",), (), "warning")


def test_of_several_devices_none_is_chosen(project: Project) -> None:
    project.write({"a.yaml": RUN + "device: RTX 4090\n", "b.yaml": RUN + "device: T4\n"})
    write_settings(Path())
    assert '\n# device = "RTX 4090"\n' in Path("trainlint.toml").read_text("utf-8")


def test_a_device_that_settings_would_refuse_is_not_written(project: Project) -> None:
    project.write({"a.yaml": RUN + "device: {name: Zeta 9, memory: 48 GiB}\n"})
    write_settings(Path())
    assert load(Path("trainlint.toml")) is not None


def test_an_empty_folder_has_settings_too(project: Project) -> None:
    (project.folder / "sub").mkdir()
    assert write_settings(Path("sub")) == "wrote sub/trainlint.toml: 0 training configs (none), 0 runs"
    assert "Found here: no training config yet." in Path("sub/trainlint.toml").read_text("utf-8")
    nearest.cache_clear()
    assert nearest(project.folder / "sub").given >= {"profile", "select"}


def test_names_are_quoted(tmp_path: Path) -> None:
    (tmp_path / "trainlint.toml").write_text(settings_text([], ["cpu"], {}))
    settings = load(tmp_path / "trainlint.toml")
    assert settings is not None
    assert settings.device is not None
    assert 'device = "the \\"box\\" \\\\ 1"' in settings_text([], ['the "box" \\ 1'], {})


def test_nothing_is_overwritten(project: Project) -> None:
    project.write({"trainlint.toml": "devices = 2\n"})
    with pytest.raises(TrainlintError, match=r"trainlint\.toml exists already"):
        write_settings(Path())
    assert Path("trainlint.toml").read_text() == "devices = 2\n"
    with pytest.raises(TrainlintError, match="gone is no folder"):
        write_settings(Path("gone"))
