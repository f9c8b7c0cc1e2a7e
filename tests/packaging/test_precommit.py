"""The hooks under pre-commit itself, where it is installed and may fetch what it needs."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .installed import REPOSITORY

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("pre_commit") is None, reason="pre-commit is not installed"),
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
]
GOOD = "a: 1\n"
BAD = "model_name_or_path: meta-llama/Llama-3.1-8B\noutput_dir: a\nlearning_rate: 2.0e-5\nfp16: true\nbf16: true\n"


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a user's pre-commit clones: the committed files, with what is changed on top."""
    folder = tmp_path_factory.mktemp("hooks") / "trainlint"
    left_out = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "tests")
    shutil.copytree(REPOSITORY, folder, ignore=left_out)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "all")
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("hook", ["trainlint", "trainlint-tree"])
def test_hook_fails_on_findings_alone(hook: str, copy: Path, cache: Path, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "train.yaml").write_text(GOOD)
    git(tmp_path, "add", "-A")

    def tried() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pre_commit", "try-repo", str(copy), hook, "--all-files"]
        environ = {**os.environ, "PRE_COMMIT_HOME": str(cache)}
        return subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)

    done = tried()
    if "CalledProcessError" in done.stdout and "pip" in done.stdout:
        pytest.skip("pre-commit can not fetch what the hook needs")
    assert done.returncode == 0, done.stdout
    (tmp_path / "train.yaml").write_text(BAD)
    git(tmp_path, "add", "-A")
    done = tried()
    assert done.returncode == 1
    assert "[precision-fp16-and-bf16]" in done.stdout
