"""The reports for programs: valid by the schemas that their readers have."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from trainlint import report
from trainlint.documents import Place
from trainlint.result import CheckedFile, Result
from trainlint.rule import Finding

from .results import FINDINGS, RESULT, RULES

EMPTY = Result(files=(CheckedFile("a.yaml", "trl"),))


def schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(files("trainlint_schemas").joinpath("report.schema.json").read_text("utf-8"))
    return loaded


@pytest.mark.parametrize("result", [RESULT, EMPTY])
def test_json_is_what_its_schema_says(result: Result) -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(json.loads(report.render("json", result)), schema(), jsonschema.Draft202012Validator)


def test_json_holds_everything() -> None:
    said = json.loads(report.render("json", RESULT))
    assert said["version"] == 1
    assert said["findings"][0] == {
        "rule": "memory-exceeds-device",
        "severity": "error",
        "message": "needs 31.2 GiB at the optimizer step, the RTX 4090 has 24.0 GiB",
        "help": "lower `max_length` to 1024 (22.6 GiB)",
        "location": {"file": "configs/sft.yaml", "line": 2, "column": 30, "end_line": 2, "end_column": 31},
        "related": [{"file": "ds, 50%.json", "line": 3, "column": 5, "message": "ZeRO shards nothing: one device"}],
        "fix": None,
    }
    edit = {"file": "configs/sft.yaml", "line": 3, "column": 7, "end_line": 3, "end_column": 11, "text": "false"}
    assert said["findings"][1]["fix"] == {"safety": "safe", "edits": [edit]}
    assert said["files"][2] == {"file": "x.py", "format": None}
    assert said["runs"] == [{"root": "configs/sft.yaml", "files": ["configs/sft.yaml", "ds, 50%.json"]}]
    assert said["not_judged"][0]["missing"] == ["model.shape.positions"]


def test_schema_takes_an_estimate() -> None:
    interval = {"low": 1, "likely": 2, "high": 3}
    run = {
        "root": "a.yaml",
        "files": ["a.yaml"],
        "model": "meta-llama/Llama-3.1-8B",
        "parameters": {"total": 8, "trainable": 8},
        "device": {"name": "RTX 4090", "count": 1, "memory_bytes": 24},
        "allocated": interval,
        "device_use": interval,
        "peak_phase": "optimizer",
        "phases": {"forward": 1, "optimizer": 2},
        "verdict": "fits",
        "ledger": [
            {"entry": "w", "dtype": "bfloat16", "elements": 1, "bytes": 2, "phases": ["load"], "formula": "1 x 2"}
        ],
        "assumptions": [],
        "unknown": [],
    }
    jsonschema.validate({"version": 1, "runs": [run]}, schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"version": 1, "runs": [{**run, "verdict": "maybe"}]}, schema())


@pytest.mark.parametrize("result", [RESULT, EMPTY])
def test_sarif_is_valid_by_the_published_schema(result: Result) -> None:
    published = json.loads((Path(__file__).parent / "data" / "sarif-schema-2.1.0.json").read_text("utf-8"))
    jsonschema.validate(json.loads(report.render("sarif", result, RULES)), published, jsonschema.Draft4Validator)


def test_sarif_describes_rules_by_their_pages() -> None:
    run = json.loads(report.render("sarif", RESULT, RULES))["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["memory-exceeds-device", "precision-both", "repro-no-seed"]
    assert rules[1]["shortDescription"]["text"] == "One `float16`, one `bfloat16`."
    assert rules[1]["help"]["markdown"].startswith("# precision-both")
    first, second, third = run["results"]
    assert rules[second["ruleIndex"]]["id"] == second["ruleId"] == "precision-both"
    assert first["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "ds%2C%2050%25.json"
    assert second["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"] == {"text": "false"}
    assert third["level"] == "note"


def test_fingerprints_stay_when_lines_move() -> None:
    def marks(result: Result) -> list[str]:
        return [entry["fingerprint"] for entry in json.loads(report.render("gitlab", result))]

    def moved(finding: Finding) -> Finding:
        place = finding.place
        return Finding(finding.rule, "error", "m", Place(place.file, place.line + 2, 1, place.end_line + 2, 2))

    before = marks(Result((*FINDINGS, FINDINGS[1]), sources=RESULT.sources))
    assert len(set(before)) == 4
    source = {file: "\n\n" + text for file, text in (RESULT.sources or {}).items()}
    assert marks(Result(tuple(map(moved, (*FINDINGS, FINDINGS[1]))), sources=source)) == before


def test_gitlab_names_path_and_lines() -> None:
    first, *_, last = json.loads(report.render("gitlab", RESULT))
    assert first["location"] == {"path": "configs/sft.yaml", "lines": {"begin": 2, "end": 2}}
    assert (first["severity"], last["severity"]) == ("major", "info")


def test_github_commands_are_escaped() -> None:
    first, second, third = report.render("github", RESULT).splitlines()
    assert first == (
        "::error file=configs/sft.yaml,line=2,endLine=2,col=30,endColumn=31,title=memory-exceeds-device::"
        "needs 31.2 GiB at the optimizer step, the RTX 4090 has 24.0 GiB"
        "%0Anote: ds, 50%25.json:3:5: ZeRO shards nothing: one device"
        "%0Ahelp: lower `max_length` to 1024 (22.6 GiB)"
    )
    assert second.startswith("::warning ")
    assert third == "::notice file=configs/sft.yaml,line=1,endLine=3,title=repro-no-seed::no seed"
    odd = Finding("a-b", "error", "m", Place("a,b:c%.yaml"))
    assert "file=a%2Cb%3Ac%25.yaml," in report.render("github", Result((odd,)))


def test_junit_counts_tests_and_failures() -> None:
    root = ElementTree.fromstring(report.render("junit", RESULT))
    assert (root.get("tests"), root.get("failures")) == ("5", "2")
    assert len(root.findall(".//failure")) == 2
    assert [suite.get("name") for suite in root] == ["configs/sft.yaml", "ds, 50%.json", "x.py"]


def test_junit_holds_no_character_that_xml_forbids() -> None:
    odd = Finding("a-b", "error", 'is "\x00" <&>', Place("a\x1b.yaml"))
    (failure,) = ElementTree.fromstring(report.render("junit", Result((odd,)))).iter("failure")
    assert failure.get("message") == 'is "\ufffd" <&>'


@pytest.mark.parametrize("name", [name for name in report.FORMATS if name != "text"])
def test_an_empty_result_is_a_valid_report(name: str) -> None:
    said = report.render(name, Result())
    if name == "junit":
        ElementTree.fromstring(said)
    elif name != "github":
        json.loads(said)


@pytest.mark.parametrize("name", report.FORMATS)
def test_what_utf8_can_not_write_is_replaced(name: str) -> None:
    odd = Finding("a-b", "error", "half \ud800", Place("a\udcff.yaml"))
    report.render(name, Result((odd,), sources={"a\udcff.yaml": "x"}), RULES).encode()
