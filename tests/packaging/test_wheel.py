"""The built wheel: nothing is missing in it, and it lints."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import yaml

from .installed import REPOSITORY, Python, build

BAD = "model_name_or_path: meta-llama/Llama-3.1-8B\noutput_dir: runs/a\nlearning_rate: 2.0e-5\nfp16: true\nbf16: true\n"
PACKAGES = {"linter/trainlint": "trainlint", "rules/trainlint_rules": "trainlint_rules"}
PACKAGES["schemas/trainlint_schemas"] = "trainlint_schemas"


def test_every_file_of_the_packages_is_in_the_wheel(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    for folder, package in PACKAGES.items():
        source = REPOSITORY / folder
        files = [path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        expected = {f"{package}/{path.relative_to(source).as_posix()}" for path in files}
        assert len(expected) > 1
        assert expected <= inside, sorted(expected - inside)


def test_the_wheel_has_its_license_and_door(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (doors,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
    assert archive.read(doors).decode().split() == [
        *("[console_scripts]", "trainlint", "=", "trainlint.cli:main"),
        *("[trainlint]", "builtin", "=", "trainlint_rules"),
    ]
    assert any(name.endswith("licenses/LICENSE") for name in archive.namelist())


def test_the_source_archive_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    (source,) = (path for path in tmp_path.iterdir() if path.is_dir())
    rebuilt = build(source, tmp_path / "wheel")
    assert zipfile.ZipFile(rebuilt).namelist() == zipfile.ZipFile(wheel).namelist()
    assert (source / "tests" / "packaging" / "test_wheel.py").is_file()


def test_the_installed_wheel_lints(installed: Python, tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text(BAD)
    done = installed.trainlint("--output-format", "json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "precision-fp16-and-bf16" in [finding["rule"] for finding in json.loads(done.stdout)["findings"]]
    (tmp_path / "train.yaml").write_text("a: 1\n")
    done = installed.trainlint("check", ".", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_command_is_installed(installed: Python) -> None:
    (command,) = (installed.folders[0] / "bin").glob("trainlint*")
    done = installed.run(str(command), "--version")
    assert done.stdout.startswith("trainlint 0.1"), done.stderr


def test_every_rule_is_found_in_the_wheel_with_its_page(installed: Python) -> None:
    source = REPOSITORY / "rules" / "trainlint_rules"
    rules = {path.name.removesuffix(".rule.yaml") for path in source.glob("*/*.rule.yaml")}
    rules |= {path.stem for path in source.glob("*/[!_]*.py")}
    done = installed.trainlint("rules", "--output-format", "names")
    assert {name for name in done.stdout.split() if not name.startswith("suppression-")} == rules, done.stderr


def test_without_rules_nothing_is_judged(needed: Path, tmp_path: Path) -> None:
    """The source alone, never installed: no plugin brings rules, and 0 would mean that all is well."""
    (tmp_path / "train.yaml").write_text(BAD)
    bare = Python((REPOSITORY / "linter", REPOSITORY / "schemas", needed))
    done = bare.trainlint("check", "train.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "no rules are installed" in done.stderr


def test_the_example_plugin_is_one(plugin: Path, installed: Python, tmp_path: Path) -> None:
    extended = Python((plugin, *installed.folders))
    listed = extended.trainlint("rules", "--output-format", "names").stdout.split()
    assert {"house-output-elsewhere", "house-warmup-long", "precision-fp16-and-bf16"} <= set(listed)
    (tmp_path / "train.yaml").write_text(BAD.replace("runs/a", "elsewhere"))
    done = extended.trainlint("check", "train.yaml", "--select", "house", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("train.yaml:2:13: warning: `output_dir: elsewhere` lies outside of `runs/`")
    done = extended.trainlint("check", "train.yaml", "--select", "house", "--output-format", "markdown", cwd=tmp_path)
    assert done.stdout.splitlines()[2].startswith("| `train.yaml:2` | warning | `output_dir: elsewhere` lies outside")
    done = extended.trainlint("check", "train.yaml", "--output-format", "xml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no output format `xml`, there are: text, json, github, gitlab, sarif, junit, markdown" in done.stderr
    said = extended.trainlint("explain", "house-warmup-long").stdout
    assert said.startswith("# house-warmup-long\n")


def test_the_example_plugin_tests_its_pages(plugin: Path, installed: Python) -> None:
    source = REPOSITORY / "examples" / "plugin"
    python = Python((source, plugin, *installed.folders))
    options = ["-q", "-c", "/dev/null", "-p", "no:cacheprovider", "--rootdir", str(source), str(source / "tests")]
    done = python.run("-m", "pytest", *options)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_hooks_start_commands_that_are_installed() -> None:
    hooks = yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert [hook["id"] for hook in hooks] == ["trainlint", "trainlint-tree"]
    changed, tree = hooks
    assert set(changed["types_or"]) == {"yaml", "json", "toml", "python", "jupyter", "shell", "makefile"}
    assert (tree["pass_filenames"], tree["always_run"]) == (False, True)
    for hook in hooks:
        assert hook["language"] == "python"
        assert hook["entry"].split()[:2] == ["trainlint", "check"]
        assert hook["require_serial"], "files of one run are judged together"


def test_the_action_runs_a_command_with_options_that_there_are() -> None:
    action = yaml.safe_load((REPOSITORY / "action.yml").read_text("utf-8"))
    command = action["runs"]["steps"][-1]["run"].split()
    assert command[:2] == ["trainlint", "check"]
    options = [word for word in command if word.startswith("--")]
    help_text = subprocess.run(
        [sys.executable, "-m", "trainlint", "check", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert all(option in help_text for option in options)
    assert {"$ARGS", "$PATHS"} <= set(command)
