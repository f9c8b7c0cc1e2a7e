"""What import-linter can not see: rules are loaded by path, and imports inside of functions cost their time later."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from .installed import REPOSITORY

RULES = sorted((REPOSITORY / "rules" / "trainlint_rules").rglob("*.py"))
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
