"""The documents tell the truth: every `trainlint` command in a console block runs, and prints what stands below it."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COMMANDS = ("estimate", "explain", "rules", "formats", "devices", "models", "init", "show")
DOCUMENTS = ("README.md", "CONTRIBUTING.md")
CONSOLE = re.compile(r"```console\n(?P<body>.*?)```", re.DOTALL)
INLINE = re.compile(r"`(?P<command>trainlint [^`]+)`")


def blocks() -> Iterator[tuple[str, str, str]]:
    for name in DOCUMENTS:
        for found in CONSOLE.finditer((ROOT / name).read_text("utf-8")):
            command, _, expected = found["body"].removeprefix("$ ").partition("\n")
            yield name, command, expected


def run(command: str) -> subprocess.CompletedProcess[str]:
    command = command.partition(" > ")[0]
    words = shlex.split(command)
    assert words[0] == "trainlint"
    return subprocess.run(
        [sys.executable, "-m", "trainlint", *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(("document", "command", "expected"), tuple(blocks()), ids=lambda value: str(value)[:50])
def test_console_blocks_show_what_is_printed(
    document: str, command: str, expected: str, request: pytest.FixtureRequest
) -> None:
    done = run(command)
    assert done.returncode in (0, 1), done.stderr
    if " > " in command:
        return
    if request.config.getoption("--update-pages"):
        path = ROOT / document
        text = path.read_text("utf-8")
        path.write_text(text.replace(f"$ {command}\n{expected}```", f"$ {command}\n{done.stdout}```"), "utf-8")
        return
    assert done.stdout == expected


def test_the_index_of_rules_is_current(request: pytest.FixtureRequest) -> None:
    index, now = ROOT / "rules" / "README.md", run("trainlint rules --output-format markdown").stdout
    if request.config.getoption("--update-pages"):
        index.write_text(now, "utf-8")
    assert index.read_text("utf-8") == now, "pytest tests/test_docs.py --update-pages writes it"
    links = re.findall(r"\]\((?P<page>[^)]+)\)", now)
    assert len(links) > 100
    assert all((index.parent / page).is_file() for page in links)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_commands_in_the_text_exist(name: str, tmp_path: Path) -> None:
    for found in INLINE.finditer((ROOT / name).read_text("utf-8")):
        words = shlex.split(found["command"])
        command = words[1] if words[1] in COMMANDS else ""
        arguments = [word for word in words[2 if command else 1 :] if word.startswith("-") or command == "explain"]
        asked = [
            command or "check",
            *arguments,
            *([] if command in ("explain", "rules", "formats") else [str(tmp_path)]),
        ]
        done = subprocess.run(
            [sys.executable, "-m", "trainlint", *asked], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert done.returncode == 0, (found["command"], done.stderr)
