"""Peaks of whole runs against a simulated allocator.

`peaks.jsonl` holds runs with their peak of torch.cuda.memory_allocated() in bytes, from fake tensors of real models:
torch 2.13, transformers 5.24, peft 0.21. Kernels of attention, 4-bit and 8-bit layers are emulated there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainlint.memory import Setup, estimate, ledger, parameters
from trainlint.memory.autograd import Tape
from trainlint.memory.estimate import solve

RUNS = [json.loads(line) for line in (Path(__file__).parent / "peaks.jsonl").read_text().splitlines()]
NAMED = pytest.mark.parametrize("run", RUNS, ids=[run["name"] for run in RUNS])


@NAMED
def test_the_peak_is_the_simulated_one(run: dict[str, Any]) -> None:
    found = estimate(run["config"], Setup.from_words(run["words"]))
    assert found.allocated == pytest.approx(run["peak"], rel=2e-3)
    assert found.low <= found.allocated <= found.high


@NAMED
def test_entries_sum_up_to_the_peak(run: dict[str, Any]) -> None:
    setup = Setup.from_words(run["words"])
    found, taken_apart = estimate(run["config"], setup), ledger(run["config"], setup)
    assert sum(entry.nbytes for entry in taken_apart) == taken_apart.total == found.allocated
    assert taken_apart.phase == found.peak_phase
    assert all(entry.nbytes > 0 and entry.what and entry.phases for entry in taken_apart)


@pytest.mark.parametrize("run", [run for run in RUNS if run["parameters"] < 2e9][::2], ids=lambda run: str(run["name"]))
def test_two_layers_stand_for_all(run: dict[str, Any]) -> None:
    setup = Setup.from_words(run["words"])
    assert solve(run["config"], setup).budget.totals() == solve(run["config"], setup, every_layer=True).budget.totals()


@NAMED
def test_parameters_are_counted_exactly(run: dict[str, Any]) -> None:
    config = run["config"]
    if run["words"]["model"]["head"] in ("causal-lm", "seq2seq"):
        assert parameters(config).total == run["parameters"]


@pytest.mark.parametrize("run", RUNS[::3], ids=[run["name"] for run in RUNS[::3]])
def test_a_formula_answers_for_every_input(run: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    record = Tape.node

    def checked(self: Tape, name: str, inputs: Any, saved: Any, formula: Any, *further: Any, **more: Any) -> Any:
        assert not isinstance(formula, tuple) or len(formula) == len(inputs), name
        return record(self, name, inputs, saved, formula, *further, **more)

    monkeypatch.setattr(Tape, "node", checked)
    solve(run["config"], Setup.from_words(run["words"]))
