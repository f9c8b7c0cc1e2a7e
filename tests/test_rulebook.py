from __future__ import annotations

from pathlib import Path

import pytest

from trainlint.rule import RuleError
from trainlint.rulebook import Deferred, collect, enabled, headers, loose, selected, unknown

DATA = "severity: info\nflag: {path: seed, is: 1}\nmessage: m\n"
CODE = '''
"""What it finds."""
from trainlint.api import rule

@rule(severity="error", on="file", needs=("device.name", "memory"), formats=("trl",))
def check(view):
    return ()
'''


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", "-").replace("-rule-yaml", ".rule.yaml").replace(
            "-py", ".py"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_names_and_families_come_from_files_and_folders(tmp_path: Path) -> None:
    write(tmp_path, batch__batch_two_py=CODE, batch__batch_one_rule_yaml=DATA, memory__memory_x_rule_yaml=DATA)
    (tmp_path / "batch" / "batch-one.md").write_text("# batch-one\n\nAll of it.\n")
    found = collect([tmp_path])
    assert [(rule.name, rule.family, rule.severity) for rule in found] == [
        ("batch-one", "batch", "info"),
        ("batch-two", "batch", "error"),
        ("memory-x", "memory", "info"),
    ]
    assert found[0].page() == "# batch-one\n\nAll of it.\n"
    assert found[1].page() == ""
    assert (found[1].on, found[1].needs, found[1].formats) == ("file", ("device.name", "memory"), ("trl",))
    assert found[1].source == str(tmp_path / "batch" / "batch-two.py")


def test_what_is_no_rule_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path, batch__batch_one_rule_yaml=DATA)
    for name in ("batch/README.md", "batch/_shared.py", "batch/data.yaml", "__init__.py", "__pycache__/x-y.py", "_old/old-x.py", ".git/git-x.py"):  # fmt: skip  # noqa: E501
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("1 +")
    assert [rule.name for rule in collect([tmp_path])] == ["batch-one"]


@pytest.mark.parametrize("name", ["batch.rule.yaml", "other-one.rule.yaml", "batch-One.rule.yaml", "batch_one.py", "batch-.rule.yaml"])  # fmt: skip  # noqa: E501
def test_names_are_checked(tmp_path: Path, name: str) -> None:
    (tmp_path / "batch").mkdir()
    (tmp_path / "batch" / name).write_text(CODE if name.endswith(".py") else DATA)
    with pytest.raises(RuleError, match=r"a rule is named `batch-<mistake>`, not") as caught:
        collect([tmp_path])
    assert str(caught.value).startswith(str(tmp_path / "batch" / name))


def test_a_name_is_given_once(tmp_path: Path) -> None:
    write(tmp_path / "a", batch__batch_one_rule_yaml=DATA)
    write(tmp_path / "b", batch__batch_one_py=CODE)
    with pytest.raises(RuleError, match="the rule `batch-one` is also in"):
        collect([tmp_path / "a", tmp_path / "b"])


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = = 1\n", ":1:5: invalid syntax"),
        ("\n\ndef f(:\n    pass\n", ":3:7: invalid syntax"),
        ("import nothing_of_that_name\n", ": No module named 'nothing_of_that_name'"),
        ("x = 1\n", ": a rule's module has one function under `@rule`, here are 0"),
        (CODE + CODE.replace("def check", "def other"), ": a rule's module has one function under `@rule`, here are 2"),
        (CODE.replace("device.name", "device.nam"), ": `needs` names `device.nam`, which no run has"),
    ],
)
def test_broken_modules_are_refused_with_their_place(tmp_path: Path, code: str, message: str) -> None:
    write(tmp_path, batch__batch_one_py=code)
    with pytest.raises(RuleError) as caught:
        collect([tmp_path])
    assert str(caught.value).startswith(str(tmp_path / "batch" / "batch-one.py"))
    assert message in str(caught.value)


def test_loose_rules_lie_anywhere_under_a_folder(tmp_path: Path) -> None:
    write(tmp_path, house_one_rule_yaml=DATA, deep__er__house_two_rule_yaml=DATA, house_three_py="x =")
    assert [(rule.name, rule.family) for rule in loose(tmp_path)] == [("house-two", "house"), ("house-one", "house")]
    assert list(loose(tmp_path / "gone")) == []


RULES = {"memory-exceeds-device": "memory", "memory-little-headroom": "memory", "schema-unknown-key": "schema"}


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("ALL", list(RULES)),
        ("memory", ["memory-exceeds-device", "memory-little-headroom"]),
        ("memory-*", ["memory-exceeds-device", "memory-little-headroom"]),
        ("*-key", ["schema-unknown-key"]),
        ("*", list(RULES)),
        ("memory-exceeds-device", ["memory-exceeds-device"]),
        ("memory-exceeds", []),
        ("mem", []),
        ("all", []),
        ("", []),
    ],
)
def test_selectors(selector: str, names: list[str]) -> None:
    assert [name for name, family in RULES.items() if selected(name, family, [selector])] == names


@pytest.mark.parametrize(
    ("select", "ignore", "on"),
    [
        (["ALL"], [], True),
        (["ALL"], ["memory"], False),
        (["ALL"], ["schema"], True),
        (["memory"], ["ALL"], True),
        (["memory"], ["memory-exceeds-device"], False),
        (["memory-exceeds-device"], ["memory"], True),
        (["memory-*"], ["memory"], True),
        (["memory-exceeds-device"], ["memory-exceeds-device"], False),
        (["memory"], ["memory-*"], False),
        (["schema"], [], False),
        ([], [], False),
    ],
)
def test_the_closer_name_counts(select: list[str], ignore: list[str], on: bool) -> None:
    assert enabled("memory-exceeds-device", "memory", select, ignore) is on


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("ALL", ""),
        ("memory", ""),
        ("memory-*", ""),
        ("schema-unknown-key", ""),
        ("schema-unknow-key", "no rule or family is named `schema-unknow-key`, did you mean `schema-unknown-key`"),
        ("memry", "no rule or family is named `memry`, did you mean `memory`"),
        ("lora-*", "no rule or family matches `lora-*`"),
        ("E501", "no rule or family is named `E501`"),
        ("", "no rule or family is named ``"),
    ],
)
def test_selectors_that_name_nothing(selector: str, message: str) -> None:
    assert unknown(selector, RULES) == message


def test_a_file_that_the_headers_know_is_loaded_when_it_is_asked(tmp_path: Path) -> None:
    folder = write(tmp_path, device__device_code_py=CODE, batch__batch_data_rule_yaml=DATA)
    before = {rule.name: rule for rule in collect([folder])}
    (folder / "headers.json").write_text(headers(folder))
    after = {rule.name: rule for rule in collect([folder])}
    for name, rule in after.items():
        assert isinstance(rule.check, Deferred)
        assert (rule.severity, rule.needs, rule.on) == (before[name].severity, before[name].needs, before[name].on)
    path = folder / "batch" / "batch-data.rule.yaml"
    path.write_text(DATA.replace("info", "warning"))
    changed = {rule.name: rule for rule in collect([folder])}["batch-data"]
    assert changed.severity == "warning"
    assert not isinstance(changed.check, Deferred)
