from __future__ import annotations

import pytest

from trainlint.documents import Place
from trainlint.run import Value, build, known, path_info, paths
from trainlint.run.vocabulary import GROUPS, OPEN
from trainlint.units import registry

KINDS = {"text", "texts", "count", "number", "flag", "anything"}


def test_every_path_has_a_kind_and_a_meaning() -> None:
    assert len(paths()) > 100
    for path, info in paths().items():
        assert info.path == path
        assert info.kind in KINDS, path
        assert info.meaning, path
        assert info.meaning[-1] not in ".", path


def test_units_are_of_the_registry_and_on_numbers_alone() -> None:
    for path, info in paths().items():
        if info.unit:
            assert info.kind in ("count", "number"), path
            assert str(registry().Unit(info.unit)) == info.unit, path


def test_choices_are_words_of_texts_each_once() -> None:
    for path, info in paths().items():
        if info.choices:
            assert info.kind == "text", path
            assert len(set(info.choices)) == len(info.choices), path


def test_open_groups_take_any_name() -> None:
    for prefix in OPEN:
        info = path_info(prefix + "whatever")
        assert info is not None
        assert info.path == prefix + "whatever"
    tokens = path_info("data.tokens.p95")
    assert tokens is not None
    assert (tokens.kind, tokens.unit) == ("count", "token")


@pytest.mark.parametrize("path", ["", "batch", "model.shape", "batch.micros", "micro", "device.memory.high"])
def test_what_is_no_path(path: str) -> None:
    assert path_info(path) is None


def test_a_run_is_built_from_every_path() -> None:
    names = [*paths(), "versions.transformers", "data.tokens.p95"]
    values: dict[str, Value[object]] = {path: Value(path, key=path) for path in names}
    run = build("a.yaml", "trl", ("a.yaml",), values)
    for path in names:
        found: object = run
        for name in path.split("."):
            found = found[name] if isinstance(found, dict) else getattr(found, name)
        assert found is values[path] is run.get(path), path


def test_an_empty_run_knows_nothing() -> None:
    run = build("a.yaml", "trl", (), {})
    assert all(run.get(path) is None for path in paths())
    assert run.model.shape.hidden is run.batch.micro is run.data.rows is run.precision.bf16 is None
    assert not run.versions
    assert not run.data.tokens
    assert set(GROUPS) <= {path.partition(".")[0] for path in paths()}


def test_a_path_that_no_run_has_is_refused() -> None:
    with pytest.raises(KeyError, match=r"batch\.micros"):
        build("a.yaml", "trl", (), {"batch.micros": Value(1)})


def test_runs_share_nothing() -> None:
    first = build("a.yaml", "trl", (), {"batch.micro": Value(1)})
    second = build("b.yaml", "trl", (), {})
    assert first.batch.micro is not None
    assert second.batch.micro is None


def test_what_is_possible_is_not_known() -> None:
    options: tuple[Value[object], ...] = (Value("adamw_torch"), Value("adamw_torch_fused"))
    run = build("a.yaml", "trl", (), {}, {"optimizer.name": options})
    assert run.optimizer.name is None
    assert run.get("optimizer.name") is None
    assert run.possible["optimizer.name"] == options


def test_a_quantity_carries_its_unit() -> None:
    memory = Value(24 << 30, unit="byte").quantity
    assert memory.to("GiB").magnitude == 24
    assert Value(2048, unit="token").quantity.check("[token]")
    with pytest.raises(TypeError, match="`run_name` has no unit"):
        _ = Value(3, key="run_name").quantity
    with pytest.raises(TypeError, match="has no unit"):
        _ = Value("much", unit="byte").quantity


def test_quantities_of_different_kinds_do_not_add() -> None:
    import pint

    with pytest.raises(pint.DimensionalityError):
        _ = Value(1, unit="byte").quantity + Value(1, unit="token").quantity


def test_a_value_keeps_what_disagrees_with_it() -> None:
    place = Place("ds.json", 3, 5, 3, 6)
    winner = Value(8, key="per_device_train_batch_size")
    loser = Value(4, key="train_micro_batch_size_per_gpu", place=place)
    assert winner.beside(loser).losers == (loser,)
    assert winner.beside(loser).beside(Value(2)).losers == (loser, Value(2))
    assert winner.losers == ()


def test_bare_values() -> None:
    assert known(None) is None
    assert known(None, 3) == 3
    assert known(Value(0), 3) == 0
    assert Value(1).written
    assert not Value(1, "default").written
