from __future__ import annotations

import pytest

from trainlint import fix
from trainlint.documents import Document, Mapping, Place, Syntax, from_text
from trainlint.rule import Finding, Rule
from trainlint.suppress import apply

RULES = [
    Rule(name, name.partition("-")[0], "warning", lambda view: ())
    for name in ("memory-exceeds-device", "memory-host-ram", "precision-both")
]


def finding(rule: str, line: int, column: int = 1, end_line: int = 0, end_column: int = 2) -> Finding:
    return Finding(rule, "warning", "m", Place("f", line, column, end_line or line, end_column))


def left(text: str, *findings: Finding, syntax: Syntax = "yaml") -> tuple[list[Finding], list[tuple[str, str]]]:
    document = from_text("f", text, syntax)
    kept, count, own = apply(findings, [document], RULES)
    assert count == len(findings) - len(kept)
    return kept, [(one.rule, one.message) for one in own]


@pytest.mark.parametrize("selector", ["precision-both", "precision", "precision-*", "*-both", "memory-*, precision"])
def test_rule_family_and_glob_silence_their_line(selector: str) -> None:
    text = f"a: 1\nb: 2  # trainlint: ignore[{selector}] measured\nc: 3\n"
    kept, _ = left(text, finding("precision-both", 2))
    assert kept == []
    kept, own = left(text, finding("precision-both", 1), finding("memory-host-ram", 3))
    assert len(kept) == 2
    assert own[0][0] == "suppression-unused"


def test_a_comment_alone_is_about_the_next_line_that_is_none() -> None:
    text = "# trainlint: ignore[memory-host-ram] a\n# trainlint: ignore[precision-both] b\n# more\nb: 2\nc: 3\n"
    kept, own = left(text, finding("precision-both", 4), finding("memory-host-ram", 4))
    assert (kept, own) == ([], [])
    kept, own = left(text, finding("precision-both", 5))
    assert len(kept) == 1
    assert [rule for rule, _ in own] == ["suppression-unused"] * 2


@pytest.mark.parametrize(
    ("syntax", "text"),
    [
        ("yaml", "lr: 1  # peak  # trainlint: ignore[precision-both] why\n"),
        ("toml", "lr = 1# trainlint: ignore[precision-both] why\n"),
        ("python", "x = '#'  # trainlint:ignore[precision-both] why\n"),
        ("shell", "a '#' --lr 1 # trainlint: ignore[precision-both] why\n"),
        ("text", "torch==2.4  # trainlint: ignore[precision-both] why\n"),
    ],
)
def test_comments_of_every_syntax(syntax: Syntax, text: str) -> None:
    assert left(text, finding("precision-both", 1), syntax=syntax) == ([], [])


@pytest.mark.parametrize(
    ("syntax", "text"),
    [
        ("yaml", 'a: "x # trainlint: ignore[precision-both] why"\n'),
        ("yaml", '"x # trainlint: ignore[precision-both] why": 1\n'),
        ("yaml", "a: x# trainlint: ignore[precision-both] why\n"),
        ("toml", "a = 'x # trainlint: ignore[precision-both] why'\n"),
        ("python", "a = 'x # trainlint: ignore[precision-both] why'\n"),
        ("shell", 'a "x # trainlint: ignore[precision-both] why"\n'),
        ("json", '{"a": 1} # trainlint: ignore[precision-both] why\n'),
    ],
)
def test_texts_are_no_comments(syntax: Syntax, text: str) -> None:
    kept, own = left(text, finding("precision-both", 1), syntax=syntax)
    assert len(kept) == 1
    assert own == []


@pytest.mark.parametrize("line", [1, 2, 4])
def test_a_stretch_is_silenced_at_its_key_first_or_last_line(line: int) -> None:
    lines = ["targets:", "  - q", "  - k", "  - v", "b: 1"]
    lines[line - 1] += "  # trainlint: ignore[precision] why"
    text = "\n".join(lines)
    root = from_text("f", text, "yaml").roots[0]
    assert isinstance(root, Mapping)
    place = root.entries[0].value.place
    assert left(text, Finding("precision-both", "error", "m", place)) == ([], [])


def test_a_block_text_ends_on_its_last_line() -> None:
    text = "cmd: |\n  a\n  b\n# trainlint: ignore[memory] other\nc: 1\n"
    kept, _ = left(text, finding("memory-host-ram", 1, 6, 4, 1), finding("memory-host-ram", 5))
    assert [one.place.line for one in kept] == [1]


def test_a_command_over_several_lines_is_silenced_above_or_at_its_end() -> None:
    text = "set -e\n# trainlint: ignore[precision] why\ntorchrun t.py \\\n  --fp16 \\\n  --bf16\nb\n"
    assert left(text, finding("precision-both", 4), syntax="shell") == ([], [])
    text = "torchrun t.py \\\n  --fp16 \\\n  --bf16 # trainlint: ignore[precision] why\nb\n"
    assert left(text, finding("precision-both", 2), syntax="shell") == ([], [])


def test_a_file_can_be_silenced() -> None:
    text = "a: 1\n# trainlint: ignore-file[memory] the card is borrowed\n---\nb: 2\n"
    kept, own = left(
        text, finding("memory-host-ram", 1), finding("memory-exceeds-device", 4), finding("precision-both", 4)
    )
    assert [one.rule for one in kept] == ["precision-both"]
    assert own == []


@pytest.mark.parametrize(
    ("comment", "rule", "message"),
    [
        ("ignore", "suppression-malformed", "`ignore` names no rule in brackets"),
        ("ignore[] why", "suppression-malformed", "`ignore` names no rule in brackets"),
        ("ignore: precision-both", "suppression-malformed", "`ignore` names no rule in brackets"),
        ("ignore-file[memory] why", "suppression-malformed", "`ignore-file` stands behind other text"),
        ("ignores[memory] why", "suppression-malformed", "trainlint has no directive `ignores`"),
        ("disable=memory", "suppression-malformed", "trainlint has no directive `disable`"),
        ("", "suppression-malformed", "trainlint has no directive ``"),
        ("ignore[precision-boht] why", "suppression-malformed", "no rule or family is named `precision-boht`"),
        ("ignore[suppression-unused] why", "suppression-malformed", "no comment silences `suppression-unused`"),
        ("ignore[memory]", "suppression-without-reason", "nothing says why `memory` is silenced"),
        ("ignore[memory] --", "suppression-without-reason", "nothing says why `memory` is silenced"),
        ("ignore[memory-*] why", "suppression-unused", "nothing here is silenced by `memory-*`"),
    ],
)
def test_what_is_wrong_with_a_comment_is_a_finding(comment: str, rule: str, message: str) -> None:
    _, own = left(f"a: 1  # trainlint: {comment}\n")
    assert (rule, message) in own


def test_without_a_reason_it_still_silences() -> None:
    kept, own = left("a: 1  # trainlint: ignore[memory]\n", finding("memory-host-ram", 1))
    assert kept == []
    assert [rule for rule, _ in own] == ["suppression-without-reason"]


def test_settings_in_comments_are_none_of_our_business() -> None:
    assert left("a: 1  # trainlint: device=RTX 4090\n# trainlint: device-memory = 24 GiB\n") == ([], [])


def document(text: str) -> Document:
    return from_text("f", text, "yaml")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a: 1  # trainlint: ignore[precision-both] why\nb: 2\n", "a: 1\nb: 2\n"),
        ("a: 1  # peak  # trainlint: ignore[precision-both] why\n", "a: 1  # peak\n"),
        ("# trainlint: ignore[precision-both] why\na: 1\n", "a: 1\n"),
        (
            "a: 1  # trainlint: ignore[precision-both, memory-host-ram] why\n",
            "a: 1  # trainlint: ignore[memory-host-ram] why\n",
        ),
    ],
)
def test_the_unused_is_taken_out(before: str, after: str) -> None:
    findings = [finding("memory-host-ram", 1)]
    _, _, own = apply(findings, [document(before)], RULES)
    assert fix.apply({"f": before}, own).texts == {"f": after}
    assert apply(findings, [document(after)], RULES)[2] == []


def test_what_was_not_judged_may_still_be_needed() -> None:
    text = document("a: 1  # trainlint: ignore[memory] why\n")
    assert apply([], [text], RULES, lambda rule, file: rule != "memory-exceeds-device")[2] == []
    assert len(apply([], [text], RULES, lambda rule, file: rule != "precision-both")[2]) == 1


def test_a_gate_can_look_behind_the_comments() -> None:
    text = document("a: 1  # trainlint: ignore[memory]\n")
    findings = [finding("memory-host-ram", 1)]
    assert apply(findings, [text], RULES, enabled=False) == (findings, 0, [])


def test_only_findings_of_the_same_file_are_silenced() -> None:
    other = Finding("memory-host-ram", "error", "m", Place("g"))
    kept, _, _ = apply([other], [document("# trainlint: ignore-file[memory] why\n")], RULES)
    assert kept == [other]
