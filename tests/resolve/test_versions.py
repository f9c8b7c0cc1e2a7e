from __future__ import annotations

from pathlib import Path

import pytest

from trainlint.resolve.versions import _versions_at, versions_at

from .runs import Folder, folder

__all__ = ["folder"]


@pytest.fixture(autouse=True)
def fresh() -> None:
    _versions_at.cache_clear()


def found(where: Path) -> dict[str, str]:
    _versions_at.cache_clear()
    return {name: value.value for name, value in versions_at(where).items()}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("transformers==4.41.2", {"transformers": "4.41.2"}),
        ("transformers===4.41.2", {"transformers": "4.41.2"}),
        ("transformers == 4.41.2", {"transformers": "4.41.2"}),
        ("transformers>=4.46,<5", {"transformers": ">=4.46,<5"}),
        ("transformers >= 4.46, < 5", {"transformers": ">=4.46,<5"}),
        ("transformers~=4.46.0", {"transformers": "~=4.46.0"}),
        ("transformers[torch,sentencepiece]==4.41.2", {"transformers": "4.41.2"}),
        ("Flash_Attn==2.6.3", {"flash-attn": "2.6.3"}),
        ("torch==2.4.0+cu121", {"torch": "2.4.0+cu121"}),
        ("torch==2.6.*", {"torch": "==2.6.*"}),
        ("trl==0.9.6  # pinned for DPO", {"trl": "0.9.6"}),
        ("trl==0.9.6 ; python_version >= '3.9'", {"trl": "0.9.6"}),
        ("    peft==0.14.0 \\", {}),
        ("transformers", {}),
        ("numpy==2.0", {}),
        ("# transformers==4.41.2", {}),
        ("-r other.txt", {}),
        ("--extra-index-url https://example.org/torch==2.0", {}),
        ("git+https://github.com/huggingface/trl.git@main", {}),
        ("trl @ git+https://github.com/huggingface/trl.git", {}),
        ("torch==2.6.0; extra == 'gpu'", {}),
    ],
)
def test_requirement_lines(folder: Folder, line: str, expected: dict[str, str]) -> None:
    folder.file("requirements.txt", f"{line}\n")
    assert found(folder.path) == expected


def test_versions_know_their_place(folder: Folder) -> None:
    folder.file("requirements.txt", "# versions\n  trl==0.9.6\n")
    value = versions_at(folder.path)["trl"]
    assert value.place is not None
    assert value.place[:5] == ("requirements.txt", 2, 3, 2, 13)
    assert (value.key, value.raw, value.file_format, value.origin) == ("trl", "==0.9.6", "requirements", "written")


def test_files_that_are_looked_at(folder: Folder) -> None:
    folder.file("requirements-dev.txt", "trl==0.9.6\n")
    folder.file("requirements.in", "peft==0.14.0\n")
    folder.file("requirements.md", "torch==1.0\n")
    folder.file("reqs.txt", "torch==1.0\n")
    folder.file("pyproject.toml", '[project]\ndependencies = ["accelerate>=1.0", "torch[extra]==2.6.0"]\n')
    assert found(folder.path) == {"trl": "0.9.6", "peft": "0.14.0", "accelerate": ">=1.0", "torch": "2.6.0"}


LOCK = """\
version = 1

[[package]]
name = "transformers"
version = "4.57.1"
source = { registry = "https://pypi.org/simple" }

[[package]]
name = "flash_attn"
version = "2.8.0.post2"

[[package]]
name = "numpy"
version = "2.0.0"
"""


@pytest.mark.parametrize("name", ["uv.lock", "poetry.lock", "pdm.lock", "pylock.toml"])
def test_lock_files_win_over_what_asks(folder: Folder, name: str) -> None:
    folder.file("requirements.txt", "transformers>=4.40\ntrl==0.9.6\n")
    folder.file(name, LOCK)
    assert found(folder.path) == {"transformers": "4.57.1", "flash-attn": "2.8.0.post2", "trl": "0.9.6"}
    place = versions_at(folder.path)["transformers"].place
    assert place is not None
    assert (place.file, place.line) == (name, 5)


def test_the_nearest_file_wins_up_to_the_repository(folder: Folder) -> None:
    folder.file("../requirements.txt", "torch==1.0.0\n")
    folder.file("requirements.txt", "trl==0.9.6\npeft==0.14.0\n")
    folder.file("a/requirements.txt", "trl==0.12.0\n")
    (folder.path / "a" / "b").mkdir()
    assert found(folder.path / "a" / "b") == {"trl": "0.12.0", "peft": "0.14.0"}
    assert found(folder.path) == {"trl": "0.9.6", "peft": "0.14.0"}


@pytest.mark.parametrize(
    "data", [b"\xff\xfe\x00", b"trl==", b"==1.0", b"trl==0.9.6" * 1000, b"(" * 1000, b"a" * 100_000]
)
def test_broken_files_say_nothing(folder: Folder, data: bytes) -> None:
    for name in ("requirements.txt", "uv.lock", "pyproject.toml"):
        (folder.path / name).write_bytes(data)
    assert found(folder.path) == {}


def test_folders_in_place_of_files(folder: Folder) -> None:
    for name in ("requirements.txt", "uv.lock", "pyproject.toml"):
        (folder.path / name).mkdir()
    assert found(folder.path) == {}
    assert found(folder.path / "gone") == {}


def test_settings_win_over_files(folder: Folder) -> None:
    folder.file("requirements.txt", "trl==0.9.6\ntransformers==4.41.2\n")
    folder.file("trainlint.toml", 'versions = { trl = "0.12" }\n')
    folder.file("run.yaml", "trainlint: run\nversions: {peft: '0.14'}\n")
    run = folder.run()
    assert {name: value.value for name, value in run.versions.items()} == {
        "trl": "0.12",
        "transformers": "4.41.2",
        "peft": "0.14",
    }
    assert run.get("versions.trl") == run.versions["trl"]
