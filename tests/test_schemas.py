"""The schemas that editors use, held against the loaders."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

import trainlint_rules
from trainlint.comparisons import OPERATORS
from trainlint.conditions import STATES
from trainlint.declarative import FIELDS, load
from trainlint.documents import from_text, read
from trainlint.errors import TrainlintError
from trainlint.initial import settings_text
from trainlint.rule import SEVERITIES, RuleError
from trainlint.settings import NAMES, PERCENTILES, PROFILES, WHOLE
from trainlint.settings import load as load_settings

RULES = sorted(Path(trainlint_rules.__file__).parent.rglob("*.rule.yaml"))


@cache
def validator(name: str) -> Draft202012Validator:
    schema = json.loads(files("trainlint_schemas").joinpath(f"{name}.schema.json").read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


def properties(name: str) -> dict[str, Any]:
    found: dict[str, Any] = validator(name).schema["properties"]  # type: ignore[index]
    return found


def test_settings_have_the_same_names() -> None:
    assert list(properties("settings")) == list(NAMES)
    override = properties("settings")["overrides"]["items"]["properties"]
    assert set(override) == {*NAMES, "paths"} - {*WHOLE}
    definitions = validator("settings").schema["$defs"]  # type: ignore[index]
    assert list(definitions["data"]["properties"]["tokens"]["properties"]) == list(PERCENTILES)
    assert definitions["profile"]["enum"] == list(PROFILES)
    assert definitions["severity"]["enum"] == list(SEVERITIES)


GOOD_SETTINGS = [
    "",
    'device = "RTX 4090"',
    "devices = 8",
    'device-memory = "24 GiB"',
    'device-memory = "24GB"\nhost-memory = "0.5 TiB"',
    'profile = "strict"',
    'versions = { transformers = "4.57", trl = ">=0.9,<0.10", torch = "2.6.0", peft = "~=0.14" }',
    "data = { rows = 52000, tokens = { p50 = 180, max = 900 } }",
    'select = ["memory", "schema-*", "ALL"]\nignore = []',
    'severity = { memory = "info" }\nfail-on = "error"',
    'exclude = ["old/", "!old/new.yaml"]',
    '[[overrides]]\npaths = ["a/**"]\ndevice = "H100"\nselect = ["memory"]',
]
BAD_SETTINGS = [
    'colour = "red"',
    "device = 4090",
    'devices = "8"',
    "devices = 0",
    "devices = 1.5",
    "device-memory = 24",
    'device-memory = "24"',
    'device-memory = "24 tokens"',
    'device-memory = "24 GIB"',
    'device-memory = "-24 GiB"',
    'profile = "school"',
    "versions = { trl = 0.9 }",
    'versions = { trl = "newest" }',
    'versions = { trl = "" }',
    "data = { rows = -1 }",
    "data = { row = 1 }",
    "data = { tokens = { p99 = 1 } }",
    'select = "memory"',
    "ignore = [1]",
    'severity = { memory = "fatal" }',
    'fail-on = "never"',
    "exclude = {}",
    'overrides = "a"',
    "[[overrides]]\ndevices = 1",
    '[[overrides]]\npaths = ["a"]\nexclude = ["b"]',
    '[[overrides]]\npaths = "a"',
]


@pytest.mark.parametrize("text", GOOD_SETTINGS)
def test_settings_that_both_take(text: str, tmp_path: Path) -> None:
    (tmp_path / "trainlint.toml").write_text(text)
    assert list(validator("settings").iter_errors(tomllib.loads(text))) == []
    assert load_settings(tmp_path / "trainlint.toml") is not None


@pytest.mark.parametrize("text", BAD_SETTINGS)
def test_settings_that_both_refuse(text: str, tmp_path: Path) -> None:
    (tmp_path / "trainlint.toml").write_text(text)
    assert not validator("settings").is_valid(tomllib.loads(text))
    with pytest.raises(TrainlintError):
        load_settings(tmp_path / "trainlint.toml")


def test_what_init_writes_is_valid() -> None:
    text = settings_text(["trl"], ['the "box"', "A100"], {"transformers": "4.57"})
    assert validator("settings").is_valid(tomllib.loads(text))
    lines = settings_text([], [], {}).splitlines()
    commented = "\n".join(line.removeprefix("# ") for line in lines if " = " in line or "[[" in line)
    assert validator("settings").is_valid(tomllib.loads(commented)), "what stands in comments is an example"


def test_rules_have_the_same_fields() -> None:
    assert set(properties("rule")) == FIELDS
    definitions = validator("rule").schema["$defs"]  # type: ignore[index]
    assert set(definitions["comparison"]["properties"]) == {"path", "key", *OPERATORS, *STATES}
    assert properties("rule")["severity"]["enum"] == list(SEVERITIES)
    assert properties("rule")["profiles"]["items"]["enum"] == list(PROFILES)


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_built_in_rules_are_valid(path: Path) -> None:
    assert [error.message for error in validator("rule").iter_errors(yaml.safe_load(path.read_text("utf-8")))] == []
    load(read(str(path)))


RULE: dict[str, object] = {
    "severity": "warning",
    "flag": {"all": [{"path": "batch.micro", "above": 8}, {"key": "bf16", "is": True}]},
    "message": "`{key}: {value}` beside `{bf16.value}`",
}
GOOD_RULES: list[dict[str, object]] = [
    {},
    {"on": "file", "formats": ["trl"], "profiles": ["teaching"], "outranks": ["batch-other"]},
    {"unless": {"not": {"any": [{"path": "seed", "known": True}]}}},
    {"at": "bf16", "help": "lower it", "notes": {"bf16": "here"}},
    {"at": ["batch.micro", "bf16"]},
    {"fix": {"set": "bf16", "to": False}},
    {"fix": {"safety": "safe", "rename": "bf16", "to": "fp16"}},
    {"fix": {"safety": "unsafe", "remove": "bf16"}},
    {"flag": {"path": "device.memory", "below": "24 GiB"}, "message": "m"},
    {"flag": {"path": "length.max", "above": {"path": "model.shape.positions"}}, "message": "m"},
    {"flag": {"path": "versions.trl", "version": ">=0.9"}, "message": "m"},
    {"flag": {"path": "method", "in": ["lora", "qlora"], "written": True}, "message": "m"},
    {"flag": {"path": "optimizer.name", "matches": "adam.*"}, "message": "m"},
    {"flag": {"path": "optimizer.lr", "above": "1e-3"}, "message": "m"},
]
BAD_RULES: list[dict[str, object]] = [
    {"severity": "fatal"},
    {"severity": None},
    {"on": "text"},
    {"colour": "red"},
    {"formats": "trl"},
    {"message": None},
    {"message": ["m"]},
    {"flag": None},
    {"flag": []},
    {"flag": {}},
    {"flag": {"all": []}},
    {"flag": {"path": "batch.micro"}},
    {"flag": {"above": 3}},
    {"flag": {"path": "batch.micro", "key": "bf16", "is": 1}},
    {"flag": {"path": "batch.micro", "equals": 1}},
    {"flag": {"path": "method", "in": "lora"}},
    {"flag": {"path": "batch.micro", "above": "much"}},
    {"flag": {"path": "batch.micro", "known": "yes"}},
    {"flag": {"path": "optimizer.name", "matches": "("}},
    {"flag": {"path": "batch.micro", "above": {"path": "seed", "is": 2}}},
    {"unless": {"all": [{"path": "seed"}]}},
    {"at": []},
    {"notes": ["bf16"]},
    {"fix": {"set": "bf16"}},
    {"fix": {"safety": "risky", "remove": "bf16"}},
    {"fix": {"remove": "bf16", "to": "x"}},
    {"fix": {}},
]


def text_of(changes: dict[str, object]) -> str:
    rule = {name: value for name, value in {**RULE, **changes}.items() if value is not None}
    return yaml.safe_dump(rule)


@pytest.mark.parametrize("changes", GOOD_RULES, ids=str)
def test_rules_that_both_take(changes: dict[str, object]) -> None:
    text = text_of(changes)
    assert [error.message for error in validator("rule").iter_errors(yaml.safe_load(text))] == []
    load(from_text("x.rule.yaml", text, "yaml"))


@pytest.mark.parametrize("changes", BAD_RULES, ids=str)
def test_rules_that_both_refuse(changes: dict[str, object]) -> None:
    text = text_of(changes)
    assert not validator("rule").is_valid(yaml.safe_load(text))
    with pytest.raises(RuleError) as caught:
        load(from_text("x.rule.yaml", text, "yaml"))
    assert caught.value.place is not None
    assert caught.value.place.file == "x.rule.yaml"
