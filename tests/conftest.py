from __future__ import annotations

import os
import tempfile

import pytest

os.environ["TRAINLINT_CACHE"] = os.path.join(tempfile.gettempdir(), "trainlint-tests-have-no-cache")
"""What somebody fetched on this machine is no part of the tests."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-pages", action="store_true", help="rewrite the report and fixed blocks of rules' pages")
