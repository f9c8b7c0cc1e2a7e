from __future__ import annotations

from pathlib import Path

import pytest

from trainlint.errors import TrainlintError
from trainlint.run import Value
from trainlint.settings import NAMES, Settings, load, matches, nearest

EVERYTHING = """\
device = "RTX 4090"
devices = 2
device-memory = "24 GiB"
host-memory = "64 GB"
profile = "teaching"
versions = { transformers = "4.57", "flash_attn" = ">=2.6,<3" }
data = { rows = 52000, tokens = { p50 = 180, p90 = 500, p95 = 900, max = 4000 } }
select = ["memory", "schema-*"]
ignore = ["memory-little-headroom"]
severity = { memory-exceeds-device = "warning", schema = "info" }
fail-on = "error"
exclude = ["old/"]
rule-paths = ["lint-rules"]

[[overrides]]
paths = ["configs/big/**"]
device = "H100"
devices = 8
fail-on = "info"
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    nearest.cache_clear()
    (tmp_path / "lint-rules").mkdir()
    return tmp_path


def settings(text: str, name: str = "trainlint.toml") -> Settings:
    path = Path.cwd() / name
    path.write_text(text, "utf-8")
    found = load(path)
    assert found is not None
    return found


def bare(value: Value[object] | Value[str] | Value[int] | None) -> object:
    return None if value is None else value.value


def test_everything_that_can_be_said() -> None:
    found = settings(EVERYTHING)
    assert bare(found.device) == "RTX 4090"
    assert bare(found.devices) == 2
    assert bare(found.device_memory) == 24 * 2**30
    assert bare(found.host_memory) == 64 * 10**9
    assert found.profile == "teaching"
    assert {name: value.value for name, value in found.versions.items()} == {
        "transformers": "4.57",
        "flash-attn": ">=2.6,<3",
    }
    assert bare(found.rows) == 52000
    assert {name: value.value for name, value in found.tokens.items()} == {
        "p50": 180,
        "p90": 500,
        "p95": 900,
        "max": 4000,
    }
    assert found.select == ("memory", "schema-*")
    assert found.ignore == ("memory-little-headroom",)
    assert found.severity == {"memory-exceeds-device": "warning", "schema": "info"}
    assert found.fail_on == "error"
    assert found.exclude == ("old/",)
    assert found.rule_paths == (Path.cwd() / "lint-rules",)
    assert found.root == Path.cwd()
    assert len(found.overrides) == 1


def test_every_name_is_in_the_example() -> None:
    words = EVERYTHING.replace("[[", " ").replace("]]", " ").split()
    assert set(NAMES) <= set(words)


def test_values_of_runs_keep_their_place() -> None:
    found = settings(EVERYTHING)
    for value, line, unit in (
        (found.device, 1, ""),
        (found.device_memory, 3, "byte"),
        (found.versions["transformers"], 6, ""),
        (found.rows, 7, "sample"),
        (found.tokens["p95"], 7, "token"),
    ):
        assert value is not None
        assert value.place is not None
        assert (value.place.file, value.place.line) == ("trainlint.toml", line)
        assert value.unit == unit
        assert value.origin == "written"
    assert [selector for selector, _ in found.selectors] == [
        "memory",
        "schema-*",
        "memory-little-headroom",
        "memory-exceeds-device",
        "schema",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('devcie = "A100"', "1:1: no setting is named `devcie`, did you mean `device`"),
        ("colour = 1", "1:1: no setting is named `colour`"),
        ('device_memory = "24 GiB"', "1:1: no setting is named `device_memory`, did you mean `device-memory`"),
        ("device = 4090", "1:10: `device` is a text in quotes, not `4090`"),
        ('device = "RTX 490"', "1:10: no device is named `RTX 490`, did you mean `RTX 4090`"),
        ('devices = "2"', '1:11: `devices` is a whole number above 0, not `"2"`'),
        ("devices = 2.0", "1:11: `devices` is a whole number above 0, not `2.0`"),
        ("devices = true", "1:11: `devices` is a whole number above 0, not `true`"),
        ("devices = 0", "1:11: `devices` is a whole number above 0, not `0`"),
        ("device-memory = 24", "1:17: `device-memory` is a text in quotes, not `24`"),
        ('device-memory = "24"', "1:17: `device-memory`: `24` has no unit (write it like `24 GiB`)"),
        ('device-memory = "24 tokens"', "1:17: `device-memory`: `24 tokens` is not a number of bytes"),
        ('device-memory = "-24 GiB"', "1:17: `device-memory`: a memory is more than nothing"),
        ('device-memory = "1e400 GiB"', "1:17: `device-memory`: `1e400 GiB` is too large a number"),
        ('host-memory = "64 GIB"', "1:15: `host-memory`: `GIB` is no unit that trainlint knows"),
        ('profile = "school"', "1:11: `profile` is one of default, strict, teaching, not `school`"),
        ("versions = 4", "1:12: `versions` is a table"),
        ("versions = { trl = 0.9 }", "1:20: `versions.trl` is a text in quotes, not `0.9`"),
        ('versions = { trl = "newest" }', "1:20: `versions.trl` is a version or a range"),
        ("data = { rowz = 2 }", "1:10: `data` has no `rowz`: there are rows, tokens"),
        ("data = { tokens = { p99 = 2 } }", "1:21: `tokens` has no `p99`: there are p50, p90, p95, max"),
        ("data = { rows = -1 }", "1:17: `data.rows` is a whole number above 0, not `-1`"),
        ('select = "memory"', "1:10: `select` is a list of texts"),
        ("select = [1]", "1:11: `select` is a text in quotes, not `1`"),
        ('severity = { memory = "fatal" }', "1:23: `memory` is one of info, warning, error, not `fatal`"),
        ("severity = []", "1:12: `severity` is a table"),
        ('fail-on = "never"', "1:11: `fail-on` is one of info, warning, error, not `never`"),
        ('rule-paths = ["gone"]', "1:14: no folder gone for `rule-paths`"),
        ("overrides = 3", "1:13: `overrides` is a list of tables: write `[[overrides]]`"),
        ("[[overrides]]\ndevices = 2", "an override needs `paths`"),
        ('[[overrides]]\npaths = ["a"]\noverrides = []', "3:1: `overrides` is for the whole tree"),
        ('[[overrides]]\npaths = ["a"]\nexclude = ["b"]', "3:1: `exclude` is for the whole tree"),
        ('versions = { trl = "" }', "1:20: `versions.trl` is a version or a range"),
        ("devices = 1\ndevice = ?", "2:10: "),
        ("devices = 1\ndevices = 2", "2:1: "),
    ],
)  # fmt: skip
def test_errors_have_a_place(text: str, message: str) -> None:
    with pytest.raises(TrainlintError) as caught:
        settings(text)
    assert str(caught.value).startswith("trainlint.toml:")
    assert message in str(caught.value)


def test_an_unknown_device_with_its_memory() -> None:
    found = settings('device = "Ascend 910Z"\ndevice-memory = "64 GB"\n')
    assert bare(found.device) == "Ascend 910Z"
    assert bare(settings('device = "cpu"').device) == "cpu"


def test_no_settings_are_settings() -> None:
    assert settings("# nothing yet\n").given == frozenset()
    assert settings("") .select == ("ALL",)  # fmt: skip


def test_pyproject() -> None:
    found = settings('[project]\nname = "x"\n[tool.trainlint]\ndevice = "A100"\n', "pyproject.toml")
    assert bare(found.device) == "A100"
    assert found.device is not None
    assert found.device.place is not None
    assert found.device.place.line == 4
    Path("pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert load(Path.cwd() / "pyproject.toml", required=False) is None
    with pytest.raises(TrainlintError, match="no settings here"):
        load(Path.cwd() / "pyproject.toml")
    Path("pyproject.toml").write_text("broken = \n")
    assert load(Path.cwd() / "pyproject.toml", required=False) is None


def test_the_nearest_file_holds(here: Path) -> None:
    deep = here / "a" / "b"
    deep.mkdir(parents=True)
    (here / "trainlint.toml").write_text("devices = 1\n")
    (here / "a" / "pyproject.toml").write_text("[tool.trainlint]\ndevices = 2\n")
    (deep / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert bare(nearest(here).devices) == 1
    assert bare(nearest(here / "a").devices) == 2
    assert bare(nearest(deep).devices) == 2
    (here / "a" / "trainlint.toml").write_text("devices = 3\n")
    nearest.cache_clear()
    assert bare(nearest(deep).devices) == 3


def test_overrides_hold_for_their_paths(here: Path) -> None:
    found = settings(EVERYTHING)
    small, big = found.at(here / "configs" / "a.yaml"), found.at(here / "configs" / "big" / "deep" / "a.yaml")
    assert bare(small.device) == "RTX 4090"
    assert (bare(big.device), bare(big.devices), big.fail_on) == ("H100", 8, "info")
    assert bare(big.rows) == 52000
    assert big.profile == "teaching"


def test_another_device_is_not_of_the_same_memory(here: Path) -> None:
    big = settings(EVERYTHING).at(here / "configs" / "big" / "a.yaml")
    assert big.device_memory is None
    assert bare(big.host_memory) == 64 * 10**9


def test_later_overrides_win(here: Path) -> None:
    found = settings(
        'severity = { a-b = "info" }\n[[overrides]]\npaths = ["x"]\nseverity = { c-d = "error" }\ndevices = 2\n'
        '[[overrides]]\npaths = ["x/y.yaml"]\ndevices = 3\n'
    ).at(here / "x" / "y.yaml")
    assert bare(found.devices) == 3
    assert found.severity == {"a-b": "info", "c-d": "error"}


def test_what_the_command_line_says_comes_first() -> None:
    project = Settings(
        ignore=("a-b",), select=("a",), severity={"a-b": "info"}, given=frozenset(("ignore", "select", "severity"))
    )
    assert project.told(Settings()).ignore == ("a-b",)
    asked = Settings(select=("a-b",), given=frozenset(("select",)))
    assert (project.told(asked).select, project.told(asked).ignore) == (("a-b",), ())
    asked = Settings(ignore=("c",), given=frozenset(("ignore",)))
    assert (project.told(asked).select, project.told(asked).ignore) == (("a",), ("a-b", "c"))
    asked = Settings(select=("x",), ignore=("y",), given=frozenset(("select", "ignore")))
    assert (project.told(asked).select, project.told(asked).ignore) == (("x",), ("y",))
    asked = Settings(severity={"c-d": "error"}, given=frozenset(("severity",)))
    assert project.told(asked).severity == {"a-b": "info", "c-d": "error"}


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("configs/big/**", ["configs/big/a.yaml", "configs/big/x/a.yaml"], ["configs/a.yaml", "big/a.yaml"]),
        ("configs", ["configs/a.yaml", "x/configs/a.yaml"], ["configs2/a.yaml"]),
        ("configs/", ["configs/a.yaml"], ["config/a.yaml"]),
        ("*.yaml", ["a.yaml", "x/a.yaml"], ["a.json"]),
        ("**/sft.yaml", ["sft.yaml", "a/sft.yaml", "a/b/sft.yaml"], ["sft.yml"]),
        ("a/b.yaml", ["a/b.yaml"], ["x/a/b.yaml"]),
    ],
)
def test_globs(glob: str, yes: list[str], no: list[str]) -> None:
    assert [path for path in (*yes, *no) if matches(path, glob)] == yes
