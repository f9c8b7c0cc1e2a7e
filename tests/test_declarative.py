from __future__ import annotations

from pathlib import Path

import pytest

from trainlint.declarative import load
from trainlint.documents import from_text, read
from trainlint.rule import RuleError, RuleSpec

from .workspace import Project, project

__all__ = ["project"]

LARGE = "severity: warning\nflag: {path: batch.micro, above: 8}\n"


def spec(text: str) -> RuleSpec:
    return load(from_text("x.rule.yaml", text, "yaml"))


def message(project: Project, rule: str, *paths: str) -> str:
    project.rule("test-rule", rule)
    found = project.check(*paths).findings
    assert len(found) == 1, found
    return found[0].message


def test_what_the_fields_make_of_a_rule() -> None:
    found = spec(LARGE + "message: m\nformats: [trl, axolotl]\nprofiles: [teaching]\noutranks: [batch-other]\n")
    assert (found.severity, found.on, found.needs) == ("warning", "run", ("batch.micro",))
    assert (found.formats, found.profiles, found.outranks) == (("trl", "axolotl"), ("teaching",), ("batch-other",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.rule.yaml:1:1: a rule file is a mapping"),
        ("- a\n", "x.rule.yaml:1:1: a rule file is a mapping"),
        ("severity: warning\nmessage: m\n", "x.rule.yaml:1:1: `flag` is missing"),
        (LARGE, "x.rule.yaml:1:1: `message` is missing"),
        (LARGE + "message: m\ncolour: red\n", "x.rule.yaml:4:1: a rule has no field `colour`"),
        (LARGE.replace("warning", "fatal") + "message: m\n", "x.rule.yaml:1:11: `severity` is one of info, warning, error, not `fatal`"),  # noqa: E501
        (LARGE + "message: m\non: text\n", "x.rule.yaml:4:5: `on` is run or file, not `text`"),
        (LARGE + "message: m\nformats: trl\n", "x.rule.yaml:4:10: `formats` is a list"),
        (LARGE + "message: '{batch.acumulation.value}'\n", "x.rule.yaml:3:10: `{batch.acumulation.value}` names nothing that the rule asks for"),  # noqa: E501
        (LARGE + "message: m\nhelp: '{nothing}'\n", "x.rule.yaml:4:7: `{nothing}` names nothing that the rule asks for"),  # noqa: E501
        (LARGE + "message: m\nnotes: {batch.micro: '{nothing}'}\n", "x.rule.yaml:4:22: `{nothing}` names nothing"),
        (LARGE + "message: m\nnotes: [batch.micro]\n", "x.rule.yaml:4:8: `notes` is a mapping"),
        (LARGE + "message: m\nfix: {remove: batch.micro, safety: risky}\n", "`safety` is safe or unsafe, not `risky`"),
        (LARGE + "message: m\nfix: {safety: safe}\n", "x.rule.yaml:4:6: `fix` needs one of set, rename, remove"),
        (LARGE + "message: m\nfix: {set: batch.micro}\n", "x.rule.yaml:4:6: `to` is missing"),
        (LARGE + "message: m\nmessage: n\n", "x.rule.yaml:4:1: "),
        (LARGE + "message: [\n", "x.rule.yaml:"),
        ("\tseverity: warning\n", "x.rule.yaml:1:"),
    ],
)  # fmt: skip
def test_broken_rules_are_refused_with_their_place(text: str, message: str) -> None:
    with pytest.raises(RuleError) as caught:
        spec(text)
    assert message in str(caught.value)
    assert caught.value.place is not None


def test_a_file_that_can_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "x-y.rule.yaml"
    path.write_bytes(b"severity: \xff\n")
    with pytest.raises(RuleError, match="is not UTF-8"):
        load(read(str(path)))
    with pytest.raises(RuleError, match="no such file"):
        load(read(str(tmp_path / "gone.rule.yaml")))


def test_a_finding_stands_at_the_value(project: Project) -> None:
    project.write({"run.yaml": "trainlint: run\nbatch:\n  micro: 16\n"})
    project.rule("test-rule", LARGE + "message: '`{key}: {value}` is many'\nhelp: lower `{key}`\n")
    found = project.check().findings
    assert [(one.rule, one.severity, one.message, one.help) for one in found] == [
        ("test-rule", "warning", "`batch.micro: 16` is many", "lower `batch.micro`")
    ]
    assert found[0].place == ("run.yaml", 3, 10, 3, 12)


def test_values_are_printed_as_written(project: Project) -> None:
    project.write({"run.yaml": "trainlint: run\noptimizer: {lr: 2e-5, name: 'sgd'}\nprecision: {bf16: yes}\n"})
    flag = "severity: info\nflag: {all: [{path: optimizer.lr, above: 0}, {path: precision.bf16, is: true}]}\n"
    assert message(project, flag + "message: '{value}, {precision.bf16.value}, {precision.bf16}'\n") == "2e-5, yes, yes"


def test_defaults_are_printed_in_plain_words(project: Project) -> None:
    project.write({"run.yaml": "trainlint: run\nclip: 1\n"})
    rule = "severity: info\nflag: {path: clip, above: 0}\nmessage: '{batch.accumulation.value} {batch.accumulation.key} ({batch.accumulation.note})'\n"  # noqa: E501
    expected = "1 batch.accumulation (a run file without `batch.accumulation`)"
    assert message(project, rule) == expected


def test_what_is_not_known_is_printed_by_its_name(project: Project) -> None:
    project.write({"run.yaml": "trainlint: run\nclip: 1\n"})
    rule = "severity: info\nflag: {path: clip, above: 0}\nmessage: '{seed.value}'\n"
    assert message(project, rule) == "seed"


def test_where_nothing_is_written_the_first_key_is_the_place(project: Project) -> None:
    project.write({"run.yaml": "# a comment\ntrainlint: run\nclip: 1\n"})
    project.rule("test-rule", "severity: info\nflag: {path: batch.accumulation, is: 1}\nmessage: m\n")
    assert project.said() == ["run.yaml:2:1: info: m [test-rule]"]


def test_of_several_places_the_first_that_is_written(project: Project) -> None:
    project.write({"run.yaml": "trainlint: run\nclip: 1\nseed: 2\n"})
    rule = "severity: info\nflag: {path: clip, above: 0}\nat: [batch.accumulation, seed, clip]\nmessage: '{key}'\n"
    assert message(project, rule) == "seed"
    assert project.check().findings[0].place.line == 3


def test_notes_are_where_something_is_written(project: Project) -> None:
    project.write({"run.yaml": "trainlint: run\nclip: 1\nseed: 2\n"})
    notes = "notes: {seed: 'here {seed.value}', batch.accumulation: a default, profile: nothing}\n"
    project.rule("test-rule", "severity: info\nflag: {path: clip, above: 0}\nmessage: m\n" + notes)
    found = project.check().findings[0]
    assert [(note.message, note.place.line) for note in found.related] == [("here 2", 3)]


def test_unless_guards(project: Project) -> None:
    project.write({"run.yaml": "trainlint: run\nclip: 1\nseed: 2\n"})
    rule = "severity: info\nflag: {path: clip, above: 0}\nmessage: m\nunless: {path: seed, is: %s}\n"
    project.rule("test-rule", rule % 2)
    assert project.said() == []
    project.rule("test-rule", rule % 3)
    assert len(project.said()) == 1


def test_what_is_unknown_under_not_is_no_finding(project: Project) -> None:
    project.write({"run.yaml": "trainlint: run\nclip: 1\n"})
    project.rule("test-rule", "severity: info\nflag: {not: {path: seed, is: 1}}\nat: clip\nmessage: m\n")
    result = project.check()
    assert result.findings == ()
    assert [(one.rule, one.missing) for one in result.not_judged] == [("test-rule", ("seed",))]


def test_rules_on_files_see_what_is_written_there(project: Project) -> None:
    project.write({"run.yaml": "trainlint: run\nclip: 1\n", "requirements.txt": "trl==0.9.6\n"})
    rule = "severity: info\non: file\nformats: [trainlint-run]\nflag: {all: [%s]}\nat: clip\nmessage: m\n"
    project.rule("test-rule", rule % "{key: clip, is: 1}, {path: clip, is: 1}")
    assert project.said() == ["run.yaml:2:7: info: m [test-rule]"]
    project.rule("test-rule", rule % "{path: batch.accumulation, is: 1}")
    assert project.said() == []  # a default is of the run, not of the file
    project.rule("test-rule", rule % "{path: versions.trl, version: '<0.10'}")
    assert len(project.said()) == 1


FIXES = [
    ("run.yaml", "trainlint: run\nclip: 1 # x\n", "{set: clip, to: '2'}", "trainlint: run\nclip: 2 # x\n"),
    ("run.yaml", "trainlint: run\nclip: 1\nseed: 1\n", "{remove: clip}", "trainlint: run\nseed: 1\n"),
    ("run.yaml", "trainlint: run\n'clip': 1\n", "{rename: clip, to: seed}", "trainlint: run\n'seed': 1\n"),
    ("run.json", '{"trainlint": "run", "clip": 1}', "{set: clip, to: none}", '{"trainlint": "run", "clip": "none"}'),
    ("run.json", '{"trainlint": "run", "clip": 1}', "{set: clip, to: false}", '{"trainlint": "run", "clip": false}'),
    ("run.json", '{"trainlint": "run", "clip": 1}', "{set: clip, to: 1e-5}", '{"trainlint": "run", "clip": 1e-5}'),
    ("run.json", '{"trainlint": "run", "clip": 1}', "{rename: clip, to: seed}", '{"trainlint": "run", "seed": 1}'),
    ("run.toml", 'trainlint = "run"\nclip = 1\n', "{set: clip, to: none}", 'trainlint = "run"\nclip = "none"\n'),
    ("run.toml", 'trainlint = "run"\nclip = 1\n', "{remove: clip}", 'trainlint = "run"\n'),
]


@pytest.mark.parametrize(("file", "before", "fix", "after"), FIXES)
@pytest.mark.parametrize("word", ["path", "key"])
def test_fixes(project: Project, file: str, before: str, fix: str, after: str, word: str) -> None:
    from trainlint.fix import apply

    project.write({file: before})
    project.rule("test-rule", f"severity: info\nflag: {{{word}: clip, is: 1}}\nmessage: m\nfix: {fix}\n")
    findings = project.check().findings
    assert findings[0].fix is not None
    assert findings[0].fix.safety == "unsafe"
    assert apply({file: before}, findings, unsafe=True).texts == {file: after}
    assert apply({file: before}, findings).texts == {}


def test_a_default_has_nothing_to_fix(project: Project) -> None:
    project.write({"run.yaml": "trainlint: run\n"})
    rule = "severity: info\nflag: {path: batch.accumulation, is: 1}\nmessage: m\nfix: {remove: batch.accumulation}\n"
    project.rule("test-rule", rule)
    assert [found.fix for found in project.check().findings] == [None]
