"""The examples of every page are linted, and must be reported and fixed as the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest
import trainlint_house

from trainlint.engine import check_folder
from trainlint.pages import verify
from trainlint.rule import Rule
from trainlint.rulebook import collect

RULES = collect([Path(trainlint_house.__file__).parent])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_page(rule: Rule, request: pytest.FixtureRequest) -> None:
    said = verify(rule, check_folder, update=bool(request.config.getoption("--update-pages")))
    assert not said, "\n".join(said)
