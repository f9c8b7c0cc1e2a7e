"""What is shipped of the rules' headers is what their files say; `pytest tests/rules --update-pages` writes it."""

from __future__ import annotations

from pathlib import Path

import pytest

import trainlint_rules
from trainlint.rulebook import HEADERS, headers


def test_the_headers_are_those_of_the_files(request: pytest.FixtureRequest) -> None:
    folder = Path(trainlint_rules.__file__).parent
    path = folder / HEADERS
    said = headers(folder)
    if request.config.getoption("--update-pages"):
        path.write_text(said, "utf-8")
    assert path.read_text("utf-8") == said
