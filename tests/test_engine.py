from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainlint.engine import check
from trainlint.errors import TrainlintError
from trainlint.rule import SEVERITIES
from trainlint.session import Request, Toolbox, open_session
from trainlint.settings import PROFILES, nearest

from .workspace import RUN, Project, project

__all__ = ["project"]

MICRO = "severity: warning\nflag: {path: batch.micro, above: 0}\nmessage: 'micro is {value}'\n"
TEXT = """
from trainlint.api import Found, rule

@rule(severity="error", on="text")
def check(document):
    for problem in document.problems:
        yield Found(problem.place, problem.message)
"""
DEVICE = """
from trainlint.api import Found, rule

@rule(severity="error", needs=("device.memory",))
def check(view):
    yield Found(view.run.batch.micro, f"{view.run.device.memory.value >> 30} GiB")
"""
MEMORY = """
from trainlint.api import Found, rule

@rule(severity="error", needs=("memory",))
def check(view):
    yield Found(view.run.batch.micro, view.memory.verdict)
"""


def test_a_folder_without_configs_is_clean(project: Project) -> None:
    project.write({"data.json": '{"a": 1}', "x.yaml": "a: 1\n", "train.py": "import torch\n"})
    result = project.check()
    assert result.findings == ()
    assert result.runs == ()
    assert {file.file: file.format for file in result.files} == {"data.json": None, "x.yaml": None, "train.py": None}


def test_findings_are_in_the_order_of_the_files(project: Project) -> None:
    project.rule("test-b", MICRO)
    project.rule("test-a", MICRO)
    project.write({"b.yaml": RUN, "a.yaml": "trainlint: run\nx: 1\nbatch:\n  micro: 9\n"})
    assert project.said() == [
        "a.yaml:4:10: warning: micro is 9 [test-a]",
        "a.yaml:4:10: warning: micro is 9 [test-b]",
        "b.yaml:2:16: warning: micro is 2 [test-a]",
        "b.yaml:2:16: warning: micro is 2 [test-b]",
    ]
    result = project.check()
    assert [(run.root, run.files) for run in result.runs] == [("a.yaml", ("a.yaml",)), ("b.yaml", ("b.yaml",))]
    assert result.sources is not None
    assert result.sources["b.yaml"] == RUN


def test_select_and_ignore(project: Project) -> None:
    project.rule("test-a", MICRO)
    project.rule("other-b", MICRO)
    project.write({"a.yaml": RUN})

    def names(**asked: object) -> list[str]:
        return [found.rule for found in project.check(**asked).findings]

    assert names() == ["other-b", "test-a"]
    assert names(select=("test",)) == ["test-a"]
    assert names(ignore=("test-*",)) == ["other-b"]
    assert names(select=("ALL",), ignore=("other-b",)) == ["test-a"]
    project.write({"trainlint.toml": 'ignore = ["test"]\n'})
    assert names() == ["other-b"]
    assert names(select=("test",)) == ["test-a"]
    assert names(ignore=("other",)) == []


def test_overrides_select_by_path(project: Project) -> None:
    project.rule("test-a", MICRO)
    project.write({"a.yaml": RUN, "big/b.yaml": RUN})
    project.write({"trainlint.toml": '[[overrides]]\npaths = ["big"]\nignore = ["test-a"]\n'})
    assert [found.place.file for found in project.check().findings] == ["a.yaml"]


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ('select = ["tset"]', "1:11"),
        ('ignore = ["test-a", "tset"]', "1:21"),
        ('severity = { tset = "info" }', "1:14"),
        ('[[overrides]]\npaths = ["a.yaml"]\nignore = ["tset"]', "3:11"),
    ],
)
def test_settings_with_rules_that_nobody_has(project: Project, settings: str, place: str) -> None:
    project.rule("test-a", MICRO)
    project.write({"a.yaml": RUN, "trainlint.toml": settings})
    with pytest.raises(TrainlintError) as caught:
        project.check()
    assert str(caught.value) == f"trainlint.toml:{place}: no rule or family is named `tset`, did you mean `test`"


@pytest.mark.parametrize("asked", [{"select": ("tset",)}, {"ignore": ("tset",)}, {"severity": {"tset": "info"}}])
def test_a_request_for_rules_that_nobody_has(project: Project, asked: dict[str, object]) -> None:
    project.rule("test-a", MICRO)
    with pytest.raises(TrainlintError) as caught:
        project.check(**asked)
    assert str(caught.value) == "no rule or family is named `tset`, did you mean `test`"


def test_comments_own_rules_can_be_selected(project: Project) -> None:
    project.write(
        {"a.yaml": RUN, "trainlint.toml": 'ignore = ["suppression-unused"]\nselect = ["ALL", "suppression"]\n'}
    )
    assert project.said() == []


def test_severities(project: Project) -> None:
    project.rule("test-a", MICRO)
    project.write({"a.yaml": RUN, "trainlint.toml": 'severity = { test = "info", test-a = "error" }\n'})
    assert [found.severity for found in project.check().findings] == ["error"]
    assert [found.severity for found in project.check(severity={"test-a": "info"}).findings] == ["info"]


def test_what_a_rule_needs_is_not_judged_without(project: Project) -> None:
    project.rule("test-device", DEVICE, ".py")
    project.write({"a.yaml": RUN})
    result = project.check()
    assert result.findings == ()
    assert [(one.rule, one.root, one.missing) for one in result.not_judged] == [
        ("test-device", "a.yaml", ("device.memory",))
    ]
    assert project.check(ignore=("test-device",)).not_judged == ()
    assert project.check(select=("base",)).not_judged == ()
    project.write({"trainlint.toml": 'device = "RTX 4090"\n'})
    assert project.said() == ["a.yaml:2:16: error: 23 GiB [test-device]"]


def test_a_memory_that_can_not_be_said_is_not_judged(project: Project) -> None:
    project.rule("test-memory", MEMORY, ".py")
    project.write({"a.yaml": RUN})
    assert [one.missing for one in project.check().not_judged] == [("memory",)]
    project.write({"a.yaml": RUN + "model: gpt2\n"})
    assert project.said() == ["a.yaml:2:16: error: unknown [test-memory]"]


def test_rules_of_profiles_and_formats(project: Project) -> None:
    project.rule("test-a", MICRO + "profiles: [teaching]\n")
    project.rule("test-b", MICRO + "formats: [axolotl]\n")
    project.write({"a.yaml": RUN})
    assert project.said() == []
    project.write({"a.yaml": "# trainlint: profile=teaching\n" + RUN})
    assert [found.rule for found in project.check().findings] == ["test-a"]
    project.write({"a.yaml": RUN, "trainlint.toml": 'profile = "teaching"\n'})
    assert [found.rule for found in project.check().findings] == ["test-a"]
    assert project.check().not_judged == ()


def test_the_more_specific_rule_speaks_alone(project: Project) -> None:
    project.rule("test-a", MICRO + "outranks: [test-b]\n")
    project.rule("test-b", MICRO)
    project.rule(
        "test-c", "severity: info\nflag: {path: batch.micro, above: 0}\nmessage: m\nat: profile\noutranks: [test-a]\n"
    )
    project.write({"a.yaml": RUN})
    assert [found.rule for found in project.check().findings] == ["test-c", "test-a"]


def test_a_finding_is_reported_once(project: Project) -> None:
    code = DEVICE.replace('needs=("device.memory",)', "").replace("yield Found(view.run.batch.micro", "yield from 2 * [Found(view.run.batch.micro").replace(' GiB")', '")]').replace("{view.run.device.memory.value >> 30}", "twice")  # fmt: skip  # noqa: E501
    project.rule("test-twice", code, ".py")
    project.write({"a.yaml": RUN})
    assert project.said() == ["a.yaml:2:16: error: twice [test-twice]"]


def test_own_rules_of_a_repository(project: Project) -> None:
    project.write({"lint/house-micro.rule.yaml": MICRO, "a.yaml": RUN, "trainlint.toml": 'rule-paths = ["lint"]\n'})
    assert project.said() == ["a.yaml:2:16: warning: micro is 2 [house-micro]"]
    project.write({"lint/deep/house-micro.rule.yaml": MICRO})
    with pytest.raises(TrainlintError, match="the rule `house-micro` exists already"):
        project.check()


def test_a_broken_rule_is_an_error_with_its_place(project: Project) -> None:
    project.write({"lint/house-micro.rule.yaml": MICRO + "colour: red\n", "a.yaml": RUN})
    project.write({"trainlint.toml": 'rule-paths = ["lint"]\n'})
    with pytest.raises(TrainlintError, match=r"lint/house-micro\.rule\.yaml:4:1: a rule has no field `colour`"):
        project.check()


def test_a_rule_for_a_format_that_there_is_not(project: Project) -> None:
    project.write(
        {"lint/house-micro.rule.yaml": MICRO + "formats: [axolotle]\n", "trainlint.toml": 'rule-paths = ["lint"]\n'}
    )
    with pytest.raises(TrainlintError, match=r"house-micro\.rule\.yaml:1:1: no format is named `axolotle`"):
        project.check()


def test_built_in_rules_name_formats_and_rules_that_exist() -> None:
    toolbox = Toolbox()
    names = {rule.name for rule in toolbox.rules}
    for rule in toolbox.rules:
        toolbox.check_formats(rule)
        assert set(rule.outranks) <= names, rule.name
        assert set(rule.profiles) <= {*PROFILES}, rule.name
        assert rule.severity in SEVERITIES, rule.name


def test_without_rules_nothing_can_be_done(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    from trainlint import plugins

    monkeypatch.setattr(plugins, "offered", lambda manager, hook: [])
    with pytest.raises(TrainlintError, match="no rules are installed"):
        project.check()


def test_the_installed_rules_come_in_as_a_plugin() -> None:
    names = [rule.name for rule in Toolbox().rules]
    assert len(names) > 10
    assert names == sorted(names)


BROKEN = {
    "tab.yaml": "a:\n\tb: 1\n",
    "open.json": '{"a": [1, 2',
    "deep.json": "[" * 5000,
    "deep.yaml": "[" * 5000,
    "deeper.yaml": "\n".join(" " * depth + "a:" for depth in range(2000)),
    "bad.toml": "a = = 1\n",
    "bad.py": "def f(:\n",
    "nul.yaml": "a: \0\n",
    "bomb.yaml": "a: &a [x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n" + "".join(
        f"c{n}: &c{n} [*{'b' if n == 0 else f'c{n - 1}'}{(',*' + ('b' if n == 0 else f'c{n - 1}')) * 8}]\n" for n in range(9)  # noqa: E501
    ),
    "anchor.yaml": "a: &a {b: *a}\n",
    "quote.yaml": 'a: "b\n',
    "empty.json": "",
    "many.yaml": "---\n" * 3000,
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_that_are_named_get_a_word(project: Project, name: str) -> None:
    project.rule("test-text", TEXT, ".py")
    project.write({name: BROKEN[name]})
    found = project.check(name).findings
    if name not in ("many.yaml", "empty.json"):
        severity = "error" if name == "nul.yaml" else "info"  # nothing could be read: it may be anything
        assert [(one.severity, one.place.file) for one in found][:1] == [(severity, name)]
    assert found == project.check(f"./{name}").findings
    assert [one.message for one in found] == [one.message for one in project.check(f"../project/{name}").findings]


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_on_the_way_are_nobodys_training_config(project: Project, name: str) -> None:
    project.rule("test-text", TEXT, ".py")
    project.write({name: BROKEN[name], "a.yaml": RUN})
    assert [found.severity for found in project.check().findings if found.severity != "info"] == []
    assert [run.root for run in project.check().runs] == ["a.yaml"]


def test_a_broken_training_config_on_the_way_is_a_finding(project: Project) -> None:
    project.rule("test-text", TEXT, ".py")
    project.write({"sft.yaml": "learning_rate: 1e-5\nper_device_train_batch_size: [\n"})
    assert [(one.severity, one.place.file) for one in project.check().findings] == [("error", "sft.yaml")]


def test_links_that_lead_nowhere(project: Project) -> None:
    project.rule("test-text", TEXT, ".py")
    os.symlink("gone.yaml", project.folder / "dangling.yaml")
    os.symlink("loop.yaml", project.folder / "loop.yaml")
    os.symlink(".", project.folder / "again")
    assert project.check().findings == ()
    assert [one.severity for one in project.check("dangling.yaml").findings] == ["error"]
    assert [one.severity for one in project.check("loop.yaml").findings] == ["error"]
    assert project.check("again").findings == ()


def test_what_is_no_regular_file(project: Project) -> None:
    project.rule("test-text", TEXT, ".py")
    os.mkfifo(project.folder / "pipe.yaml")
    assert project.check().findings == ()
    assert [(one.severity, one.message) for one in project.check("pipe.yaml").findings] == [
        ("error", "not a regular file")
    ]


def test_folders_that_can_not_be_read(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.rule("test-text", TEXT, ".py")
    project.write({"shut/a.yaml": RUN})
    scandir = os.scandir

    def refused(path: str) -> object:
        if str(path).endswith("shut"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    assert project.said() == ["shut:1:1: info: permission denied [test-text]"]
    assert project.said("shut") == ["shut:1:1: error: permission denied [test-text]"]


def test_paths_that_do_not_exist(project: Project) -> None:
    for path in ("gone.yaml", "gone/a.yaml", "x" * 300, "a" * 5000):
        with pytest.raises(TrainlintError, match="no such file or folder: "):
            project.check(path)


def test_a_named_file_that_is_shown_another_way(project: Project) -> None:
    project.rule("test-a", MICRO)
    project.write({"a/b.yaml": RUN})
    assert project.said("./a//b.yaml") == ["a/b.yaml:2:16: warning: micro is 2 [test-a]"]
    absolute = str(project.folder / "a" / "b.yaml")
    assert project.said(absolute) == [f"{absolute}:2:16: warning: micro is 2 [test-a]"]
    assert project.said("a/b.yaml", "a", absolute) == ["a/b.yaml:2:16: warning: micro is 2 [test-a]"]


def test_standard_input_has_a_name(project: Project) -> None:
    project.rule("test-a", MICRO)
    project.write({"big/trainlint.toml": 'severity = { test-a = "error" }\n'})

    def said(name: str, text: bytes) -> list[tuple[str, str]]:
        nearest.cache_clear()
        result, _ = check(Request(paths=(name,), stdin=(name, text)))
        return [(found.place.file, found.severity) for found in result.findings]

    assert said("big/new.yaml", RUN.encode()) == [("big/new.yaml", "error")]
    assert said("new.yaml", RUN.encode()) == [("new.yaml", "warning")]
    assert said("new.json", b'{"trainlint": "run", "batch": {"micro": 1}}') == [("new.json", "warning")]
    assert said("stdin", RUN.encode()) == [("stdin", "warning")]
    assert said("new.yaml", b"\xff\xfe\x00") == []


def test_a_settings_file_that_is_named_holds_alone(project: Project) -> None:
    project.rule("test-a", MICRO)
    project.write({"a.yaml": RUN, "trainlint.toml": 'ignore = ["test-a"]\n', "other/ci.toml": "devices = 4\n"})
    session = open_session(Request(config=Path("other/ci.toml")))
    assert session.settings.ignore == ()
    count = session.runs[0].run.device.count
    assert count is not None
    assert count.value == 4


def test_exclude(project: Project) -> None:
    project.write({"a.yaml": RUN, "old/b.yaml": RUN, "trainlint.toml": 'exclude = ["old/"]\n'})
    assert [run.root for run in project.check().runs] == ["a.yaml"]
    assert [run.root for run in project.check("old/b.yaml").runs] == ["old/b.yaml"]


def test_comments_for_rules_that_were_not_asked_are_not_unused(project: Project) -> None:
    project.rule("test-a", MICRO)
    project.rule("test-device", DEVICE, ".py")
    project.write(
        {"a.yaml": "trainlint: run\nbatch: {micro: 2}  # trainlint: ignore[test-a, test-device] both are known\n"}
    )
    assert project.said() == []
    assert project.check().suppressed == 1
    assert project.said(ignore=("test-a",)) == []
    project.write({"a.yaml": "trainlint: run\nclip: 1  # trainlint: ignore[test-a] why\n"})
    assert [found.rule for found in project.check().findings] == []
    project.write({"a.yaml": "trainlint: run\nbatch: {micro: 2}\nclip: 1  # trainlint: ignore[test-a] why\n"})
    assert [found.rule for found in project.check().findings] == ["test-a", "suppression-unused"]
