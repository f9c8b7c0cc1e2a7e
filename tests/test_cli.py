from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from trainlint import __version__
from trainlint.cli import main

from .workspace import RUN, Project, project

__all__ = ["project"]

MICRO = "severity: warning\nflag: {path: batch.micro, above: 4}\nmessage: '{value} is many'\n"
UNSAFE = MICRO + "fix: {set: batch.micro, to: '4'}\n"
SAFE = MICRO + "fix: {safety: safe, set: batch.micro, to: '4'}\n"
LARGE = RUN.replace("2", "16")
FOUND = "a.yaml:2:16: warning: 16 is many [test-micro]"


class Line:
    """The command line, run in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.capsys = capsys
        self.monkeypatch = monkeypatch

    def __call__(self, *arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        try:
            code = main(arguments)
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1
        out, err = self.capsys.readouterr()
        return code, out, err


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Line:
    return Line(capsys, monkeypatch)


@pytest.fixture
def large(project: Project) -> Project:
    """A project with one finding."""
    project.rule("test-micro", MICRO)
    project.write({"a.yaml": LARGE})
    return project


def test_nothing_to_say_is_silence(project: Project, line: Line) -> None:
    project.write({"a.yaml": RUN})
    assert line() == (0, "", "")


def test_without_a_command_it_checks_here(large: Project, line: Line) -> None:
    code, out, err = line()
    assert (code, err) == (1, "")
    assert out.splitlines()[0] == FOUND
    assert line("check") == line("check", ".") == line(".") == line("a.yaml") == (code, out, err)


def test_paths_stand_anywhere(large: Project, line: Line) -> None:
    large.write({"b.yaml": LARGE})
    expected = line("-q", "a.yaml", "b.yaml")
    assert expected[0] == 1
    assert len(expected[1].splitlines()) == 2
    for arguments in (
        ("a.yaml", "-q", "b.yaml"),
        ("a.yaml", "b.yaml", "-q"),
        ("check", "a.yaml", "--select", "test", "b.yaml", "-q"),
        ("--select", "test", "a.yaml", "-q", "b.yaml"),
        ("-q", "--", "a.yaml", "b.yaml"),
    ):
        assert line(*arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone.yaml"], "no such file or folder: gone.yaml"),
        (["--config", "gone.toml"], "no settings file gone.toml"),
        (["--select", "tset"], "no rule or family is named `tset`, did you mean `test`"),
        (["--select", "test,lora-*"], "no rule or family matches `lora-*`"),
        (["--ignore", "test-mikro"], "no rule or family is named `test-mikro`, did you mean `test-micro`"),
        (["--select", ","], "--select names no rule"),
        (["--severity", "tset=info"], "no rule or family is named `tset`, did you mean `test`"),
        (["--severity", "test"], "--severity is NAME=error, NAME=warning or NAME=info, not `test`"),
        (["--severity", "test=fatal"], "--severity is NAME=error, NAME=warning or NAME=info, not `test=fatal`"),
        (["--device-memory", "24"], "--device-memory: `24` has no unit (write it like `24 GiB`)"),
        (["--device-memory", "0 GiB"], "--device-memory: a memory is more than nothing"),
        (["--host-memory", "64 tokens"], "--host-memory: `64 tokens` is not a number of bytes"),
        (["--device", "RTX 409"], "--device: no device is named `RTX 409`, did you mean `RTX 4090`"),
        (["--device", "RTX 4090:0"], "--device `RTX 4090:0` counts no device"),
        (["--output-format", "xml"], "no output format `xml`"),
        (["--output-file", "gone/report.txt"], "can not write `gone/report.txt`: no such file or directory"),
        (["explain", "test-mikro"], "no rule is named `test-mikro`, did you mean `test-micro`"),
        (["rules", "nothing"], "none of the rules has `nothing` in its name"),
        (["init", "gone"], "gone is no folder"),
    ],
)
def test_usage_errors_are_one_line(large: Project, line: Line, arguments: list[str], message: str) -> None:
    code, out, err = line(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"trainlint: {message}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["--bogus"], ["--fail-on", "never"], ["--select"], ["estimate", "--fix"], ["explain"]]
)
def test_unknown_flags_show_the_usage(large: Project, line: Line, arguments: list[str]) -> None:
    code, out, err = line(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("usage: trainlint")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("devices = two\n", "trainlint.toml:1:11: "),
        ('select = ["tset"]\n', "trainlint.toml:1:11: no rule or family is named `tset`, did you mean `test`\n"),
        ("colour = 1\n", "trainlint.toml:1:1: no setting is named `colour`\n"),
    ],
)
def test_bad_settings_are_told_with_their_place(large: Project, line: Line, settings: str, message: str) -> None:
    large.write({"trainlint.toml": settings})
    code, out, err = line()
    assert (code, out) == (2, "")
    assert err.startswith(f"trainlint: {message}")
    large.write({"trainlint.toml": "", "sub/trainlint.toml": settings, "sub/a.yaml": LARGE})
    code, out, err = line()
    assert (code, out) == (2, "")
    assert err.startswith(f"trainlint: sub/{message}")


def test_a_broken_rule_is_told_with_its_place(large: Project, line: Line) -> None:
    large.rule("test-broken", "severity: warning\nflag: {path: batch.mikro, above: 4}\nmessage: m\n")
    code, out, err = line()
    assert (code, out) == (2, "")
    assert "test-broken.rule.yaml:2:14: a run has no path `batch.mikro`, did you mean `batch.micro`" in err


@pytest.mark.parametrize(
    ("severity", "fail_on", "code"),
    [
        ("error", None, 1), ("warning", None, 1), ("info", None, 0),
        ("error", "error", 1), ("warning", "error", 0), ("info", "info", 1),
    ],
)  # fmt: skip
def test_what_fails(large: Project, line: Line, severity: str, fail_on: str | None, code: int) -> None:
    arguments = ["--severity", f"test-micro={severity}", *(["--fail-on", fail_on] if fail_on else [])]
    assert line(*arguments)[0] == code
    assert line(*arguments, "--exit-zero")[0] == 0
    assert line(*arguments)[1] == line(*arguments, "--exit-zero")[1] != ""


def test_settings_say_what_fails(large: Project, line: Line) -> None:
    large.write({"trainlint.toml": 'fail-on = "error"\n'})
    assert line()[0] == 0
    assert line("--fail-on", "warning")[0] == 1
    large.write({"trainlint.toml": 'profile = "strict"\nseverity = { test = "info" }\n'})
    assert line()[0] == 1
    assert line("--profile", "default")[0] == 0
    assert line("--fail-on", "error")[0] == 0


def test_a_comment_makes_a_file_strict(large: Project, line: Line) -> None:
    large.write({"trainlint.toml": 'severity = { test = "info" }\n'})
    assert line()[0] == 0
    large.write({"a.yaml": "# trainlint: profile=strict\n" + LARGE})
    assert line()[0] == 1
    assert line("--fail-on", "warning")[0] == 0


def test_selectors_are_repeated_and_joined_by_commas(large: Project, line: Line) -> None:
    large.rule("other-micro", MICRO)

    def rules(*arguments: str) -> list[str]:
        out = line("-q", *arguments)[1]
        return [text[text.index("[") + 1 : -1] for text in out.splitlines()]

    assert rules() == ["other-micro", "test-micro"]
    assert rules("--select", "test,other") == ["other-micro", "test-micro"]
    assert rules("--select", "test", "--select", "other-*") == ["other-micro", "test-micro"]
    assert rules("--select", "ALL", "--ignore", "test-micro") == ["other-micro"]
    assert rules("--ignore", "test", "--ignore", "other") == []
    assert rules("--ignore", "test , base") == ["other-micro"]


def test_the_report_goes_to_a_file(large: Project, line: Line) -> None:
    assert line("--output-file", "report.json", "--output-format", "json") == (1, "", "")
    report = json.loads(Path("report.json").read_text("utf-8"))
    assert [found["rule"] for found in report["findings"]] == ["test-micro"]


def test_formats_of_plugins(large: Project, line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    from trainlint import plugins

    def offered(manager: object, hook: str) -> list[object]:
        return (
            [("count", lambda result: f"{len(result.findings)}\n")]
            if hook == "trainlint_reports"
            else large.offered(manager, hook)
        )

    monkeypatch.setattr(plugins, "offered", offered)
    assert line("--output-format", "count") == (1, "1\n", "")


def test_quiet_and_verbose(large: Project, line: Line) -> None:
    large.rule("test-device", "severity: info\nflag: {path: device.memory, below: 1 GiB}\nmessage: m\n")
    assert line("-q")[1] == FOUND + "\n"
    assert "not judged" not in line()[1]
    assert "a.yaml: not judged: test-device (unknown: device.memory)" in line("-v")[1]
    assert "test-device" not in line("-v", "--select", "test-micro")[1]
    assert "    1  warning  test-micro" in line("--statistics")[1]


def test_safe_fixes(large: Project, line: Line) -> None:
    large.rule("test-micro", SAFE)
    assert line("--fix") == (0, "", "")
    assert Path("a.yaml").read_text() == RUN.replace("2", "4")


def test_unsafe_fixes_are_asked_for(large: Project, line: Line) -> None:
    large.rule("test-micro", UNSAFE)
    assert line("--fix")[0] == 1
    assert Path("a.yaml").read_text() == LARGE
    assert line("--fix", "--unsafe-fixes")[0] == 0
    assert Path("a.yaml").read_text() == RUN.replace("2", "4")


def test_a_difference_changes_nothing(large: Project, line: Line) -> None:
    large.rule("test-micro", SAFE)
    code, out, _ = line("--diff")
    assert code == 1
    assert out.splitlines()[:2] == ["--- a/a.yaml", "+++ b/a.yaml"]
    assert "+batch: {micro: 4}" in out
    assert Path("a.yaml").read_text() == LARGE
    assert line("--diff", "--exit-zero")[0] == 0
    large.rule("test-micro", UNSAFE)
    assert line("--diff")[1] == ""
    assert "+batch: {micro: 4}" in line("--diff", "--unsafe-fixes")[1]


def test_standard_input(large: Project, line: Line) -> None:
    text = LARGE.encode()
    assert line("-q", "--stdin-filename", "new.yaml", "-", stdin=text) == (
        1,
        FOUND.replace("a.yaml", "new.yaml") + "\n",
        "",
    )
    assert line("-q", "-", stdin=text)[:2] == (1, FOUND.replace("a.yaml", "stdin.yaml") + "\n")
    assert line("-", stdin=b"") == (0, "", "")
    assert line("-", stdin=b"\xff\xfe\x00")[0] in (0, 1)


def test_standard_input_is_fixed_to_standard_output(large: Project, line: Line) -> None:
    large.rule("test-micro", SAFE)
    Path("a.yaml").write_text("untouched\n")
    fixed = RUN.replace("2", "4")
    assert line("--fix", "--stdin-filename", "a.yaml", "-", stdin=LARGE.encode()) == (0, fixed, "")
    assert Path("a.yaml").read_text() == "untouched\n"
    large.rule("test-micro", UNSAFE)
    code, out, err = line("--fix", "-q", "-", stdin=LARGE.encode())
    assert (code, out, err) == (1, LARGE, FOUND.replace("a.yaml", "stdin.yaml") + "\n")
    code, out, err = line("--diff", "--unsafe-fixes", "-", stdin=LARGE.encode())
    assert (code, err) == (1, "")
    assert "+batch: {micro: 4}" in out
    assert line("--fix", "-", stdin=b"no: config\n") == (0, "no: config\n", "")


def test_hardware_from_the_command_line(project: Project, line: Line) -> None:
    rule = "severity: info\nflag: {all: [{path: device.memory, above: 1 GiB}]}\nat: batch.micro\n"
    project.rule("test-device", rule + "message: '{device.name.value} {device.memory.value} x{device.count.value}'\n")
    project.write({"a.yaml": RUN, "trainlint.toml": 'device = "RTX 4090"\ndevice-memory = "12 GiB"\ndevices = 2\n'})

    def said(*arguments: str) -> str:
        return line("-q", *arguments)[1].removeprefix("a.yaml:2:16: info: ").removesuffix(" [test-device]\n")

    assert said() == "RTX 4090 12 GiB x2"
    assert said("--device", "A100 80GB:4") == "A100 80GB 85899345920 x4"
    assert said("--device-memory", "16GB") == "RTX 4090 16GB x2"
    assert said("--device", "Ascend 9:3", "--device-memory", "64 GB") == "Ascend 9 64 GB x3"


def test_an_estimate(project: Project, line: Line) -> None:
    project.write({"a.yaml": RUN + "model: gpt2\nlength: {max: 128}\nprecision: {weights: float32}\n"})
    code, out, err = line("estimate", "--device", "RTX 4090")
    assert (code, err) == (0, "")
    assert "gpt2" in out
    assert "RTX 4090" in out
    assert line("estimate", "--device-memory", "1 GiB")[0] == 1
    code, out, _ = line("estimate", "--output-format", "json")
    assert code == 0
    assert json.loads(out)["runs"][0]["root"] == "a.yaml"
    project.write({"a.yaml": "a: 1\n"})
    assert line("estimate")[0] == 0


def test_pages(large: Project, line: Line) -> None:
    assert line("explain", "test-micro") == (0, "# test-micro\n\nThis rule has no page.\n", "")
    large.write({"test/test-micro.md": "# test-micro\n\nMany samples.\n"}, large.rules)
    assert line("explain", "test-micro") == (0, "# test-micro\n\nMany samples.\n", "")
    assert line("rules", "test-micro")[1].split() == ["test-micro", "warning", "Many", "samples"]


def test_versions_and_help(line: Line) -> None:
    assert line("--version") == (0, f"trainlint {__version__}\n", "")
    for arguments in (["-h"], ["check", "--help"], ["estimate", "-h"], ["explain", "-h"], ["init", "-h"]):
        code, out, err = line(*arguments)
        assert (code, err) == (0, "")
        assert out.startswith("usage: trainlint")


def test_init_writes_settings_that_hold(large: Project, line: Line) -> None:
    code, out, _ = line("init")
    assert code == 0
    assert out == "wrote trainlint.toml: 1 training configs (trainlint-run), 1 runs\n"
    assert line()[0] == 1
    assert line("init") == (2, "", "trainlint: trainlint.toml exists already\n")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.yaml", b"a: [\n"),
        ("x.yaml", b"[" * 100_000),
        ("x.json", b'{"a":' * 50_000),
        ("x.toml", b"a = [" * 20_000),
        ("x.py", b"(" * 5_000),
        ("x.py", b"x = " + b"-" * 20_000 + b"1\n"),
        ("x.sh", b"accelerate launch '\n\0"),
        ("x.yaml", bytes(range(256))),
        ("x.yaml", "a: 1\u2028b: 2\n".encode()),
        ("x.yaml", b"trainlint: run\nbatch: {micro: 1" + b"0" * 5000 + b"}\n"),
        ("x.yaml", b"trainlint: run\noptimizer: {lr: 1e999}\nclip: .nan\nlength: {max: .inf}\n"),
        ("x.yaml", b"trainlint: run\n? [a, b]\n: 1\n1: 2\nnull: 3\n"),
        ("x.yaml", b"trainlint: run\nmodel: {config: {model_type: llama, hidden_size: x}}\n"),
        ("x.yaml", b"trainlint: run\nmodel: {id: ['']}\ndevice: {name: ''}\n"),
        ("x.yaml", b"<<: *gone\n"),
        ("x.yaml", b"!!python/object/apply:os.system ['true']\n"),
    ],
)
def test_no_input_is_a_traceback(project: Project, line: Line, name: str, data: bytes) -> None:
    Path(name).write_bytes(data)
    for arguments in ((), (name,), ("estimate",), ("--fix",), ("--output-format", "json"), ("-v",)):
        code, _, err = line(*arguments)
        assert code in (0, 1)
        assert err == ""
    assert line("-", "--stdin-filename", name, stdin=data)[0] in (0, 1)


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    command = f"{sys.executable} -m trainlint devices | head -c 10"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, cwd=tmp_path)
    assert done.stderr == ""
    assert done.returncode == 0


def test_a_terminal_without_the_characters(project: Project) -> None:
    project.write({"a.yaml": RUN + "model: gpt2\nlength: {max: 128}\nprecision: {weights: float32}\n"})
    done = subprocess.run(
        [sys.executable, "-m", "trainlint", "estimate", "a.yaml"],
        capture_output=True,
        text=True,
        env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": ":".join(sys.path)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "peak" in done.stdout
