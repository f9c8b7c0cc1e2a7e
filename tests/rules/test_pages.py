"""The page of every installed rule: its examples are linted, and must be reported and fixed as the page shows."""

from __future__ import annotations

import pytest

from trainlint import plugins
from trainlint.engine import check_folder
from trainlint.pages import verify
from trainlint.rule import Rule
from trainlint.rulebook import collect

RULES = collect(plugins.offered(plugins.load(), "trainlint_rules"))


def test_rules_are_installed() -> None:
    assert RULES


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_page(rule: Rule, request: pytest.FixtureRequest) -> None:
    said = verify(rule, check_folder, update=bool(request.config.getoption("--update-pages")))
    assert not said, "\n".join(said)
