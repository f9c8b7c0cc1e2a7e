from __future__ import annotations

import pytest

from trainlint.comparisons import OPERATORS
from trainlint.conditions import Compiler, Test, View
from trainlint.documents import from_text
from trainlint.formats import Fragment
from trainlint.rule import RuleError, Target
from trainlint.run import Value

FILE = """\
learning_rate: 1e-5
bf16: true
tiny: 0
nested:
  stage: 3
  names: [a, b]
text: abc
"""


def view(**values: object) -> View:
    document = from_text("train.yaml", FILE, "yaml")
    fragment = Fragment("axolotl", document, document.roots[0])  # type: ignore[arg-type]
    known: dict[str, Value[object]] = {}
    for name, value in values.items():
        made: Value[object] = value if isinstance(value, Value) else Value(value)
        known[name.replace("__", ".").replace("flash_attn", "flash-attn")] = made
    return View(known.get, (fragment,))


def compiled(text: str, on: Target = "run") -> tuple[Test, list[str]]:
    document = from_text("x.rule.yaml", text, "yaml")
    compiler = Compiler((), on)
    return compiler.condition(document.roots[0]), compiler.needs


def holds(text: str, **values: object) -> bool | None:
    return compiled(text)[0](view(**values))


def refusal(text: str) -> str:
    with pytest.raises(RuleError) as caught:
        compiled(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("operator", "literal", "yes", "no"),
    [
        ("is", "2", [2, 2.0], [1, 3]),
        ("is-not", "2", [1, 3], [2]),
        ("in", "[1, 2]", [1, 2], [3]),
        ("not-in", "[1, 2]", [3], [1, 2]),
        ("above", "2", [3, 2.5], [2, 1]),
        ("at-least", "2", [2, 3], [1]),
        ("below", "2", [1], [2, 3]),
        ("at-most", "2", [2, 1], [3]),
    ],
)
def test_operators_on_numbers(operator: str, literal: str, yes: list[object], no: list[object]) -> None:
    for value in (*yes, *no):
        assert holds(f"{{path: batch.micro, {operator}: {literal}}}", batch__micro=value) is (value in yes)
    assert holds(f"{{path: batch.micro, {operator}: {literal}}}") is None


def test_every_operator_is_tested_here() -> None:
    with open(__file__, encoding="utf-8") as file:
        text = file.read()
    assert [name for name in OPERATORS if f'"{name}"' not in text and f"{name}:" not in text] == []


@pytest.mark.parametrize(
    ("condition", "values", "expected"),
    [
        ("{path: precision.bf16, is: true}", {"precision__bf16": True}, True),
        ("{path: precision.bf16, is: true}", {"precision__bf16": False}, False),
        ("{path: precision.bf16, is: false}", {"precision__bf16": False}, True),
        ("{path: precision.mixed, is: 'no'}", {"precision__mixed": "no"}, True),
        ("{path: optimizer.name, matches: 'adamw(_.*)?'}", {"optimizer__name": "adamw_torch"}, True),
        ("{path: optimizer.name, matches: 'adamw'}", {"optimizer__name": "adamw_torch"}, False),
        ("{path: adapter.targets, is: all-linear}", {"adapter__targets": ("all-linear",)}, True),
        ("{path: adapter.targets, is: [q, v]}", {"adapter__targets": ("q", "v")}, True),
        ("{path: adapter.targets, is: [q, v]}", {"adapter__targets": ("q",)}, False),
        ("{path: optimizer.lr, above: 1e-3}", {"optimizer__lr": 2e-3}, True),
        ("{path: optimizer.lr, above: 1e-3}", {"optimizer__lr": 2e-4}, False),
        ("{path: device.memory, above: 24 GiB}", {"device__memory": 24 * 2**30 + 1}, True),
        ("{path: device.memory, above: 24 GiB}", {"device__memory": 24 * 10**9}, False),
        ("{path: device.memory, above: 0}", {"device__memory": 1}, True),
        ("{path: batch.accumulation, above: {path: seed}}", {"batch__accumulation": 9, "seed": 8}, True),
        ("{path: length.max, above: {path: model.shape.positions}}", {"length__max": 9}, None),
        ("{path: length.max, above: {path: model.shape.positions}}", {"model__shape__positions": 8}, None),
        ("{path: batch.micro, above: 1, below: 4}", {"batch__micro": 2}, True),
        ("{path: batch.micro, above: 1, below: 4}", {"batch__micro": 4}, False),
    ],
)  # fmt: skip
def test_comparisons(condition: str, values: dict[str, object], expected: bool | None) -> None:
    assert holds(condition, **values) is expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("{key: learning_rate, above: 1e-6}", True),
        ("{key: bf16, is: true}", True),
        ("{key: bf16, is: 1}", False),
        ("{key: tiny, is: false}", False),
        ("{key: nested.stage, is: 3}", True),
        ("{key: nested.names, is: [a, b]}", True),
        ("{key: text, matches: 'a.*'}", True),
        ("{key: text, above: 3}", False),
        ("{key: absent, is: true}", False),
        ("{key: absent, is-not: true}", False),
        ("{not: {key: absent, is: true}}", True),
        ("{key: absent, known: false}", True),
        ("{key: bf16, known: true}", True),
        ("{key: bf16, written: true}", True),
        ("{key: learning_rate, below: {path: optimizer.lr}}", None),
        ("{key: learning_rate, below: {key: absent}}", False),
    ],
)
def test_keys_as_written(condition: str, expected: bool | None) -> None:
    assert holds(condition) is expected


@pytest.mark.parametrize(
    ("written", "wanted", "expected"),
    [
        ("4.46.1", ">=4.46", True),
        ("4.45.2", ">=4.46", False),
        ("4.46", ">=4.46,<4.47", True),  # the whole line of releases
        ("4.46", ">=4.46.1", False),
        (">=4.46", ">=4.40", True),
        (">=4.46", ">=4.50", False),
        (">=4.46,<5", "<5", True),
        (">=4.46", "<5", False),
        (">=4.46,<=5.0", "<5", False),
        (">4.46", ">4.46", True),
        (">=4.46", ">4.46", False),
        (">=2,<3", "!=1.5", True),
        (">=1,<3", "!=1.5", False),
        ("==2.6.0", "==2.6.0", True),
        (">=2.6", "==2.6.0", False),
        ("~=4.44.0", "<4.45", True),
        ("git+https://example.org/x", ">=1", False),
    ],
)
def test_versions(written: str, wanted: str, expected: bool) -> None:
    condition = f"{{path: versions.transformers, version: '{wanted}'}}"
    assert holds(condition, versions__transformers=written) is expected


def test_states() -> None:
    default, given = Value(2, "default"), Value(2)
    assert holds("{path: batch.micro, written: true}", batch__micro=given) is True
    assert holds("{path: batch.micro, written: true}", batch__micro=default) is False
    assert holds("{path: batch.micro, written: false}", batch__micro=default) is True
    assert holds("{path: batch.micro, known: true}", batch__micro=default) is True
    assert holds("{path: batch.micro, known: false}", batch__micro=default) is False
    assert holds("{path: batch.micro, known: false}") is True
    assert holds("{path: batch.micro, written: true}") is False
    assert holds("{path: batch.micro, at-least: 2, written: true}", batch__micro=default) is False


YES, NO, UNKNOWN = "{path: seed, is: 1}", "{path: seed, is: 2}", "{path: clip, is: 1}"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (f"{{all: [{YES}, {YES}]}}", True),
        (f"{{all: [{YES}, {NO}]}}", False),
        (f"{{all: [{YES}, {UNKNOWN}]}}", None),
        (f"{{all: [{UNKNOWN}, {NO}]}}", False),
        (f"{{any: [{NO}, {YES}]}}", True),
        (f"{{any: [{NO}, {NO}]}}", False),
        (f"{{any: [{UNKNOWN}, {YES}]}}", True),
        (f"{{any: [{UNKNOWN}, {NO}]}}", None),
        (f"{{not: {YES}}}", False),
        (f"{{not: {NO}}}", True),
        (f"{{not: {UNKNOWN}}}", None),
        (f"{{not: {{any: [{UNKNOWN}, {NO}]}}}}", None),
        (f"{{not: {{all: [{UNKNOWN}, {NO}]}}}}", True),
        (f"{{not: {{not: {UNKNOWN}}}}}", None),
    ],
)
def test_what_is_unknown_decides_nothing(condition: str, expected: bool | None) -> None:
    assert holds(condition, seed=1) is expected


@pytest.mark.parametrize(
    ("condition", "needs"),
    [
        ("{path: seed, is: 1}", ["seed"]),
        ("{path: length.max, above: {path: model.shape.positions}}", ["length.max", "model.shape.positions"]),
        ("{all: [{path: seed, is: 1}, {any: [{path: clip, is: 1}, {path: loss, is: full}]}]}", ["seed"]),
        ("{any: [{path: seed, is: 1}, {path: clip, is: 1}]}", []),
        ("{not: {path: seed, is: 1}}", ["seed"]),
        ("{not: {any: [{path: seed, is: 1}, {path: clip, is: 1}]}}", ["seed", "clip"]),
        ("{not: {all: [{path: seed, is: 1}, {path: clip, is: 1}]}}", []),
        ("{path: seed, known: true}", ["seed"]),
        ("{path: seed, known: false}", []),
        ("{key: seed, is: 1}", []),
    ],
)
def test_what_a_condition_needs(condition: str, needs: list[str]) -> None:
    test, found = compiled(condition)
    assert found == needs
    if needs:
        assert test(view()) is not True
    assert compiled(condition, "file")[1] == []


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("[]", "1:1: a condition is a mapping"),
        ("{}", "1:1: a condition needs `path` or `key`"),
        ("{is: 2}", "1:1: a condition needs `path` or `key`"),
        ("{path: seed, key: seed, is: 2}", "1:1: a condition has one of `path` and `key`"),
        ("{path: seed}", "1:1: nothing is asked of `seed`"),
        ("{path: batch.micros, is: 2}", "1:8: a run has no path `batch.micros`, did you mean `batch.micro`"),
        ("{path: seed, equals: 2}", "1:14: no operator `equals`: there are is, is-not, "),
        ("{path: seed, is: {path: seeds}}", "a run has no path `seeds`"),
        ("{path: seed, is: {path: clip, is: 2}}", "`is` does not belong here"),
        ("{path: batch.micro, above: {path: length.max}}", "`batch.micro` counts sample, `length.max` token"),
        ("{path: device.memory, above: 24}", "1:30: `device.memory`: `24` has no unit (write it like `24 GiB`)"),
        ("{path: device.memory, above: 24 tokens}", "1:30: `device.memory`: `24 tokens` is not a number of bytes"),
        ("{path: device.memory, above: 24 gigs}", "`gigs` is no unit"),
        ("{path: batch.accumulation, above: 2 steps}", "`batch.accumulation` is a number of nothing, not `2 steps`"),
        ("{path: batch.micro, is: true}", "`batch.micro` is a number of sample, not `True`"),
        ("{path: precision.bf16, is: yess}", "`precision.bf16` is true or false, not `yess`"),
        ("{path: precision.mixed, is: no}", "`precision.mixed` is one of no, fp16, bf16, fp8, not `False`"),
        ("{path: method, in: [lora, qlorra]}", "`method` is one of full, lora, qlora, freeze, not `qlorra`"),
        ("{path: method, in: lora}", "1:20: `in` takes a list"),
        ("{path: optimizer.name, is: 3}", "`optimizer.name` is a text, not `3`"),
        ("{path: optimizer.name, above: 3}", "`optimizer.name` is no number"),
        ("{path: optimizer.name, matches: '('}", "`(` is no regular expression"),
        ("{path: optimizer.name, version: '>=4'}", "`version` compares `versions.…` with a range"),
        ("{path: versions.trl, version: newest}", "`version` compares `versions.…` with a range"),
        ("{key: seed, above: much}", "`above` compares with a number, not `much`"),
        ("{path: seed, known: maybe}", "`known` is true or false"),
        ("{all: []}", "`all` is a list of conditions"),
        ("{any: {path: seed, is: 2}}", "`any` is a list of conditions"),
        ("{all: [{path: seed, is: 2}], path: seed}", "`path` does not belong here"),
        ("{not: [{path: seed, is: 2}]}", "a condition is a mapping"),
    ],
)  # fmt: skip
def test_what_could_not_be_carried_out_is_refused(condition: str, message: str) -> None:
    found = refusal(condition)
    assert found.startswith("x.rule.yaml:1:")
    assert message in found
