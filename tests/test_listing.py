from __future__ import annotations

import json

import pytest

from trainlint import suppress
from trainlint.errors import TrainlintError
from trainlint.formats.registry import built_in
from trainlint.listing import OWN, explain, listing

from .workspace import Project, project

__all__ = ["project"]

RULE = "severity: warning\nflag: {path: batch.micro, above: 4}\nmessage: m\n"


@pytest.fixture
def rules(project: Project) -> Project:
    project.rule("test-micro", RULE)
    project.write({"test/test-micro.md": "# test-micro\n\nToo many at once. It ends badly.\n"}, project.rules)
    return project


def test_rules(rules: Project) -> None:
    assert listing("rules", "micro", "text") == "test-micro  warning  Too many at once"
    names = listing("rules", "", "names").splitlines()
    assert names == ["base-silent", "test-micro", *suppress.OWN]
    assert json.loads(listing("rules", "test", "json")) == [
        {"name": "test-micro", "severity": "warning", "about": "Too many at once"}
    ]


def test_rules_as_a_page(rules: Project) -> None:
    lines = listing("rules", "micro", "markdown").splitlines()
    assert lines[0] == "# 1 rules"
    assert lines[4:] == [
        "## test",
        "",
        "| rule | severity | formats | about |",
        "| --- | --- | --- | --- |",
        f"| [test-micro]({rules.rules.name}/test/test-micro.md) | warning | all | Too many at once |",
    ]
    assert "| base-silent |" in listing("rules", "base", "markdown")  # no page, no link
    assert "| suppression-unused | warning | all |" in listing("rules", "unused", "markdown")


def test_devices_as_a_table() -> None:
    assert listing("devices", "rtx 4090", "markdown").splitlines()[2].startswith("| RTX 4090 | 24.0 GiB | 8.9 |")


def test_own_rules_are_listed_too(rules: Project) -> None:
    rules.write({"lint/house-micro.rule.yaml": RULE, "trainlint.toml": 'rule-paths = ["lint"]\n'})
    assert "house-micro" in listing("rules", "", "names").splitlines()
    assert explain("house-micro").startswith("# house-micro")


def test_formats() -> None:
    assert set(listing("formats", "", "names").splitlines()) >= {form.name for form in built_in()}
    assert "trainlint-run  trainlint run file" in listing("formats", "run", "text")


def test_devices() -> None:
    found = json.loads(listing("devices", "rtx 4090", "json"))
    assert found[0] == {"name": "RTX 4090", "memory": "24.0 GiB", "capability": "8.9", "bf16": "native"}
    assert len(listing("devices", "", "names").splitlines()) > 100


def test_models() -> None:
    found = {row["name"]: row for row in json.loads(listing("models", "gpt2", "json"))}
    assert any(row["parameters"] == 124_439_808 and row["type"] == "gpt2" for row in found.values())


@pytest.mark.parametrize("what", ["rules", "formats", "devices", "models"])
def test_columns_line_up_without_trailing_space(what: str) -> None:
    lines = listing(what, "", "text").splitlines()
    assert len(lines) > 1
    assert all(line == line.rstrip() for line in lines)
    assert len(lines) == len(listing(what, "", "names").splitlines()) == len(json.loads(listing(what, "", "json")))
    with pytest.raises(TrainlintError, match=f"none of the {what} has `no such thing` in its name"):
        listing(what, "no such thing", "text")


def test_pages(rules: Project) -> None:
    assert explain("test-micro") == "# test-micro\n\nToo many at once. It ends badly."
    assert explain("base-silent") == "# base-silent\n\nThis rule has no page."
    with pytest.raises(TrainlintError, match="no rule is named `test-mikro`, did you mean `test-micro`"):
        explain("test-mikro")
    with pytest.raises(TrainlintError, match=r"no rule is named `xyz`$"):
        explain("xyz")


def test_what_is_found_about_comments_has_pages() -> None:
    assert set(OWN) == set(suppress.OWN)
    for name in OWN:
        assert explain(name).startswith(f"# {name}\n\nA comment ")
