"""The search for changes that fit: cheapest first, only what can be said, nothing that is not needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from trainlint.memory.assessment import Assessment, Interval
from trainlint.memory.fit import Fit, fitting
from trainlint.memory.knobs import knobs
from trainlint.run import TrainingRun, Value, build

GIB = 1 << 30
WRITTEN: dict[str, object] = {
    "batch.micro": 8,
    "batch.accumulation": 2,
    "checkpointing.kind": "none",
    "method": "full",
    "optimizer.name": "adamw_torch",
    "length.max": 4096,
    "kernels": "none",
}


def run_of(**other: object) -> TrainingRun:
    values = {**WRITTEN, **{path.replace("__", "."): value for path, value in other.items()}}
    return build("train.yaml", "trl", (), {path: Value(value) for path, value in values.items()})


def assessment(room: float, values: Mapping[str, object] | None = None) -> Assessment:
    """A toy model in GiB: 16 of states (10 with 8-bit moments, 3 with LoRA) and 2 a sample, a quarter recomputed."""
    now = {**WRITTEN, **(values or {})}
    states = {"full": 16, "lora": 3, "qlora": 1}[str(now["method"])]
    states -= 6 if now["optimizer.name"] == "adamw_bnb_8bit" and now["method"] == "full" else 0
    sample = 2 * float(str(now["length.max"])) / 4096
    sample /= 4 if now["checkpointing.kind"] == "full" else 1
    need = int((states + sample * int(str(now["batch.micro"]))) * GIB)
    interval = Interval(need, need, need)
    return Assessment(
        allocated=interval,
        device_use=interval,
        capacity=(int(room * GIB), int(room * GIB)),
        verdict="fits" if need <= room * GIB else "exceeds",
        peak_phase="backward",
        phases={},
        parameters=0,
        trainable=0,
        assumptions=(),
        unknown=(),
        ledger=lambda: None,  # type: ignore[arg-type, return-value]
        variant=lambda changes: assessment(room, {**now, **changes}),
    )


def found(room: float, run: TrainingRun | None = None, dumb: tuple[str, ...] = ()) -> Fit:
    def sayable(values: Mapping[str, object]) -> bool:
        return not any(path in dumb for path in values)

    return fitting(assessment(room), run or run_of(), sayable)


def test_the_largest_batch_that_fits_comes_first_and_keeps_the_effective_one() -> None:
    first, second = found(25).changes
    assert first.values == {"batch.micro": 4, "batch.accumulation": 4}
    assert first.likely == 24 * GIB
    assert second.values == {"checkpointing.kind": "full"}


def test_what_cannot_be_said_is_not_proposed() -> None:
    assert found(25, dumb=("batch.micro",)).changes[0].values == {"checkpointing.kind": "full"}


def test_changes_are_joined_where_none_alone_is_enough_and_no_more_than_needed() -> None:
    (change,) = found(12.5).changes
    assert change.values == {"batch.micro": 1, "batch.accumulation": 16, "optimizer.name": "adamw_bnb_8bit"}


def test_adapters_come_last() -> None:
    (change,) = found(5).changes
    assert change.values["method"] == "lora"
    assert found(25).changes[0].values.get("method") is None


def test_nothing_is_proposed_that_does_not_fit() -> None:
    fit = found(1)
    assert fit.changes == ()
    assert fit.least is not None
    assert fit.least.likely == int(10.5 * GIB)


def test_a_length_that_the_data_allow_keeps_the_training() -> None:
    run = run_of(data__tokens__max=1000)
    (change,) = fitting(assessment(20.5), run, lambda values: "length.max" in values).changes
    assert change.values == {"length.max": 1024}
    assert change.keeps


def test_a_length_that_may_cut_samples_changes_it_and_stays_above_what_the_data_are_thought_to_need() -> None:
    run = run_of(data__tokens__max=1500, data__estimated=True)
    (change,) = fitting(assessment(24.5), run, lambda values: "length.max" in values).changes
    assert change.values == {"length.max": 2048}
    assert not change.keeps
    assert fitting(assessment(20.5), run, lambda values: "length.max" in values).changes == ()


def test_where_nothing_fits_what_frees_nothing_is_left_out() -> None:
    fit = fitting(assessment(1), run_of(), lambda values: "method" not in values and "length.max" not in values)
    assert fit.least is not None
    assert "kernels" not in fit.least.values
    assert fit.least.values["optimizer.name"] == "adamw_bnb_8bit"


def test_one_knob_is_turned_no_further_than_needed() -> None:
    (change,) = fitting(assessment(29), run_of(batch__micro=8), lambda values: "batch.micro" in values).changes
    assert change.values["batch.micro"] == 4


def test_a_thorough_search_says_what_is_not_enough_and_what_frees_most() -> None:
    fit = fitting(assessment(25), run_of(), lambda values: True, limit=6, thorough=True)
    assert fit.most is not None
    assert fit.most.parts[0][0].name == "micro batch"
    assert fit.frees == (32 - 18) * GIB
    names = [change.parts[0][0].name for change in fit.singles]
    assert "8-bit optimizer" in names
    assert "micro batch" not in names
    assert [change.keeps for change in fit.changes] == sorted((change.keeps for change in fit.changes), reverse=True)


def test_shards_and_8_bit_moments_do_not_go_together() -> None:
    run = run_of(device__count=8, sharding__kind="none", parallel__data=8)
    names = [knob.name for knob in knobs(run)]
    assert names.index("sharding") < names.index("LoRA")
    fit = fitting(assessment(1), run, lambda values: "method" not in values)
    assert fit.least is not None
    assert not {"sharding.kind", "optimizer.name"} <= set(fit.least.values)


def test_a_search_is_bounded() -> None:
    asked: list[object] = []

    def glance(values: Mapping[str, object]) -> int:
        asked.append(values)
        return 99 * GIB

    run = run_of(batch__micro=65536, length__max=131072, model__id="Qwen/Qwen2.5-72B-Instruct", device__count=8)
    fitting(replace(assessment(1), glance=glance), run, lambda values: True, limit=6, thorough=True)
    assert len(asked) < 60


def test_smaller_models_are_of_the_same_series() -> None:
    last = knobs(run_of(model__id="Qwen/Qwen2.5-7B-Instruct"))[-1]
    assert [values["model.id"] for values in last.settings][:2] == [
        "Qwen/Qwen2.5-3B-Instruct",
        "Qwen/Qwen2.5-1.5B-Instruct",
    ]


def test_an_odd_batch_goes_down_to_one() -> None:
    fit = fitting(assessment(20), run_of(batch__micro=3), lambda values: "batch.micro" in values)
    assert fit.changes[0].values == {"batch.micro": 1, "batch.accumulation": 6}


def test_nothing_is_said_without_a_device() -> None:
    assert fitting(replace(assessment(1), capacity=None), run_of(), lambda values: True) == Fit()


def test_what_is_likely_to_fit_already_is_changed_only_for_what_fits_for_certain() -> None:
    toy = assessment(40)
    certain = replace(assessment(40, {"checkpointing.kind": "full"}), verdict="fits")

    def variant(changes: Mapping[str, object]) -> Assessment:
        return certain if "checkpointing.kind" in changes else replace(toy, verdict="tight")

    fit = fitting(replace(toy, verdict="tight", variant=variant), run_of(), lambda values: True)
    assert [change.parts[0][0].name for change in fit.changes] == ["activation checkpointing"]
