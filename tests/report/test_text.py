from __future__ import annotations

import io
from dataclasses import replace

import pytest

from trainlint import report
from trainlint.documents import Place
from trainlint.errors import TrainlintError
from trainlint.report.color import wanted
from trainlint.report.excerpt import excerpt
from trainlint.result import Result
from trainlint.rule import Finding

from .results import FINDINGS, RESULT

EXPECTED = """\
configs/sft.yaml:2:30: error: needs 31.2 GiB at the optimizer step, the RTX 4090 has 24.0 GiB [memory-exceeds-device]
   |   2 | per_device_train_batch_size: 8
   |     |                              ^
   note: ds, 50%.json:3:5: ZeRO shards nothing: one device
   help: lower `max_length` to 1024 (22.6 GiB)
configs/sft.yaml:3:7: warning: `fp16: true` beside `bf16: true` [precision-both]
   |   3 | fp16: true  # über
   |     |       ^~~~
configs/sft.yaml:1:1: info: no seed [repro-no-seed]
   |   1 | model: m
   |     | ^~~~~~~~
1 error, 1 warning, 1 note in 3 files; fixable: 1 with `--fix`
"""


def test_text_is_as_documented() -> None:
    assert report.render("text", RESULT) == EXPECTED


def test_nothing_found_says_nothing() -> None:
    assert report.render("text", Result(files=RESULT.files)) == ""


def test_quiet_is_one_line_a_finding() -> None:
    said = report.render("text", RESULT, quiet=True)
    assert said.splitlines() == [line for line in EXPECTED.splitlines() if line.endswith("]")]


def test_verbose_tells_what_was_not_judged() -> None:
    said = report.render("text", replace(RESULT, findings=(), suppressed=2), verbose=True).splitlines()
    assert said[0] == "configs/sft.yaml: not judged: length-too-long (unknown: model.shape.positions)"
    assert said[1] == "nothing found in 3 files (2 training configs, 1 run), 2 silenced by comments"


def test_statistics_count_the_rules() -> None:
    said = report.render("text", replace(RESULT, findings=(*FINDINGS, FINDINGS[2])), statistics=True, quiet=True)
    assert said.splitlines()[-3:] == [
        "    2  info     repro-no-seed",
        "    1  error    memory-exceeds-device",
        "    1  warning  precision-both",
    ]


def test_colour_only_adds_escape_sequences() -> None:
    import re

    said = report.render("text", RESULT, color=True)
    assert "\x1b[1;31merror\x1b[0m" in said
    assert re.sub(r"\x1b\[[0-9;]*m", "", said) == EXPECTED


def test_source_can_not_drive_the_terminal() -> None:
    finding = Finding("a-b", "info", "red \x1b[31m\nnext", Place("f\x1b.yaml", 1, 1, 1, 3))
    said = report.render("text", Result((finding,), sources={"f\x1b.yaml": "a: \x1b]0;x\x07 \u202e"}))
    assert "\x1b" not in said
    assert "\x07" not in said
    assert "\u202e" not in said
    assert said.splitlines()[0] == "f\ufffd.yaml:1:1: info: red \ufffd[31m\ufffdnext [a-b]"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environ", "color"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (Terminal(), {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        (Terminal(), {"NO_COLOR": ""}, True),
        (io.StringIO(), {}, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True),
    ],
)
def test_colour_is_for_terminals_unless_the_environment_says_so(
    stream: io.StringIO, environ: dict[str, str], color: bool
) -> None:
    assert wanted(stream, environ) is color


@pytest.mark.parametrize(
    ("line", "columns", "marks"),
    [
        ("größe: 8", (8, 9), "       ^"),
        ("模型: 八", (5, 6), "      ^~"),
        ("\tlr: 1", (6, 7), "        ^"),
        ("abc", (9, 12), "   ^"),
        ("abc", (2, 2), " ^"),
    ],
)
def test_marks_stand_under_what_they_mark(line: str, columns: tuple[int, int], marks: str) -> None:
    shown = excerpt(Place("f", 1, columns[0], 1, columns[1]), [line])
    assert shown is not None
    assert shown[1] == marks


def test_long_lines_are_cut_around_the_mark() -> None:
    line = "x" * 5000 + "HERE" + "y" * 5000
    shown = excerpt(Place("f", 1, 5001, 1, 5005), [line])
    assert shown is not None
    text, marks = shown
    assert len(text) <= 102
    assert text[len(marks) - 4 : len(marks)] == "HERE"
    assert marks.strip() == "^~~~"


def test_lines_outside_the_source_are_not_shown() -> None:
    assert excerpt(Place("f", 7), ["a"]) is None
    assert excerpt(Place("f", 1), [""]) is None


def test_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(TrainlintError, match=r"no output format `xml`, there are: text, json, .*, mine"):
        report.render("xml", RESULT, further={"mine": lambda result: "mine"})
    assert report.render("mine", RESULT, further={"mine": lambda result: "mine"}) == "mine"
