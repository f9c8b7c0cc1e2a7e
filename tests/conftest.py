from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import HealthCheck, settings

os.environ["TRAINLINT_CACHE"] = os.path.join(tempfile.gettempdir(), "trainlint-tests-have-no-cache")
"""What somebody fetched on this machine is no part of the tests."""

settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")  # how long an example takes says more of the machine than of the code


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-pages", action="store_true", help="rewrite the report and fixed blocks of rules' pages")
