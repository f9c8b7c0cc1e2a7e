"""What import-linter can not see: rules are loaded by path, and imports inside of functions cost their time later."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from .installed import REPOSITORY

RULES = sorted((REPOSITORY / "rules" / "trainlint_rules").rglob("*.py"))
OURS = ("trainlint", "trainlint_rules", "trainlint_schemas")
MODULES = {"yaml": "pyyaml"}
"""Modules whose distribution is named otherwise."""
HEAVY = ("pint", "jsonschema", "rich", "packaging", "torch", "transformers", "numpy")


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_rules_see_only_their_door(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Import():
                names = [alias.name for alias in node.names]
            case ast.ImportFrom():
                names = [node.module or ""] if node.level == 0 else ["a relative import"]
            case _:
                continue
        for name in names:
            known = name == "trainlint.api" or name.partition(".")[0] in sys.stdlib_module_names
            assert known, f"line {node.lineno}: {name}"


def test_nothing_heavy_is_imported_where_there_is_no_training_config(tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text("services:\n  web:\n    image: nginx\n")
    (tmp_path / "package.json").write_text('{"name": "x"}\n')
    program = (
        "import json, sys; from trainlint.cli import main; code = main(['check', '.']);"
        "print(json.dumps([code, sorted(sys.modules)]))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    code, modules = json.loads(done.stdout)
    assert code == 0
    assert [name for name in HEAVY if name in modules] == []


def imported(path: Path) -> set[str]:
    """The packages that a module imports, at its top or inside of a function."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Import():
                names += [alias.name for alias in node.names]
            case ast.ImportFrom(module=str() as module, level=0):
                names.append(module)
    return {name.partition(".")[0] for name in names}


def test_what_is_imported_is_what_is_declared() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = {re.split(r"[<>=~! ]", one)[0] for one in project["dependencies"]}
    may = needed | {re.split(r"[<>=~! ]", one)[0] for name in extras if name != "dev" for one in extras[name]}
    sources = [path for folder in ("linter", "rules", "schemas") for path in (REPOSITORY / folder).rglob("*.py")]
    found = set().union(*(imported(path) for path in sources)) - sys.stdlib_module_names - {*OURS}
    names = {MODULES.get(name, name) for name in found}
    assert names - may == set(), "imported and not declared"
    assert needed - names == set(), "declared and not imported"
