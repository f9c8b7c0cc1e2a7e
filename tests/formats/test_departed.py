"""Keys that releases took away."""

from __future__ import annotations

import pytest

from trainlint.facts import history
from trainlint.formats.semantics.departed import LEFT, installed, since
from trainlint.run import Value


@pytest.mark.parametrize(("framework", "section"), LEFT)
def test_the_list_of_names_is_that_of_the_history(framework: str, section: str) -> None:
    keys = history.framework(framework).section(section)
    assert LEFT[framework, section] == {
        name for name in keys if keys[name].framework == framework and keys[name].removed_in
    }


def test_a_framework_says_which_transformers_it_needs() -> None:
    versions = {"trl": Value("0.12.2", key="trl")}
    wanted, pin = installed(versions, "transformers")
    assert wanted is not None
    assert pin is versions["trl"]
    assert since(versions, "transformers", "5.0") is False


def test_an_own_pin_counts_more_than_what_a_framework_needs() -> None:
    versions = {"trl": Value("0.12.2", key="trl"), "transformers": Value("5.2.0", key="transformers")}
    assert since(versions, "transformers", "5.0") is True
    assert since({}, "transformers", "5.0") is None
