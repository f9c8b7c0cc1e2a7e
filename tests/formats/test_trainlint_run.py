from __future__ import annotations

from pathlib import Path

import pytest

from trainlint.formats import Fragment

from .drafting import draft, fragment, fragments

FULL = """\
trainlint: run
model: {id: meta-llama/Llama-3.1-8B}
method: lora
precision: {weights: bfloat16, compute: bfloat16}
adapter: {rank: 16, targets: all-linear}
batch: {micro: 2, accumulation: 8}
length: {max: 2048}
checkpointing: true
optimizer: adamw_torch_fused
device: {name: RTX 4090}
"""


def read(text: str, file: str = "run.yaml") -> dict[str, object]:
    return {path: value.value for path, value in fragment("trainlint: run\n" + text, file).values.items()}


def faults(text: str) -> list[tuple[int, int, str]]:
    found = fragment("trainlint: run\n" + text).facts["faults"]
    assert isinstance(found, list)
    return [(place.line, place.column, message) for place, message in found]


def the_fault(text: str) -> tuple[int, int, str]:
    found = faults(text)
    assert len(found) == 1, found
    return found[0]


def test_the_example_of_the_documentation() -> None:
    assert fragment(FULL).facts["faults"] == []
    assert {path: value.value for path, value in fragment(FULL).values.items()} == {
        "model.id": "meta-llama/Llama-3.1-8B",
        "method": "lora",
        "precision.weights": "bfloat16",
        "precision.compute": "bfloat16",
        "adapter.rank": 16,
        "adapter.targets": ("all-linear",),
        "batch.micro": 2,
        "batch.accumulation": 8,
        "length.max": 2048,
        "checkpointing.kind": "full",
        "optimizer.name": "adamw_torch_fused",
        "device.name": "RTX 4090",
    }


def test_values_know_key_place_and_raw_text() -> None:
    value = fragment(FULL).values["batch.micro"]
    assert (value.key, value.raw, value.unit, value.origin, value.file_format) == (
        "batch.micro",
        "2",
        "sample",
        "written",
        "trainlint-run",
    )
    assert value.place is not None
    assert (value.place.line, value.place.column) == (6, 16)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            "run.toml",
            'trainlint = "run"\nmethod = "full"\noptimizer = "sgd"\n[batch]\nmicro = 2\n[data.tokens]\np95 = 9\n',
        ),
        (
            "run.json",
            '{"trainlint": "run", "method": "full", "optimizer": {"name": "sgd"}, "batch": {"micro": 2},'
            ' "data": {"tokens": {"p95": 9}}}',
        ),
        ("run.yaml", "trainlint: run\nmethod: full\noptimizer: sgd\nbatch: {micro: 2}\ndata: {tokens: {p95: 9}}\n"),
    ],
)
def test_three_syntaxes_say_the_same(file: str, text: str) -> None:
    found = fragment(text, file)
    assert found.facts["faults"] == []
    assert found.launches
    assert {path: value.value for path, value in found.values.items()} == {
        "method": "full",
        "optimizer.name": "sgd",
        "batch.micro": 2,
        "data.tokens.p95": 9,
    }


@pytest.mark.parametrize("text", ["model: m\n", "trainlint: check\n", "- trainlint: run\n", "trainlint: [run]\n", ""])
def test_what_is_no_run_file(text: str) -> None:
    assert [found for found in fragments(text) if found.format == "trainlint-run"] == []


def test_several_runs_in_one_file() -> None:
    found = fragments("trainlint: run\nbatch: {micro: 1}\n---\ntrainlint: run\nbatch: {micro: 2}\n---\nother: 1\n")
    assert [one.values["batch.micro"].value for one in found] == [1, 2]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("optimizer: sgd\n", {"optimizer.name": "sgd"}),
        ("optimizer: {name: sgd, momentum: 0.9}\n", {"optimizer.name": "sgd", "optimizer.momentum": 0.9}),
        ("model: gpt2\n", {"model.id": "gpt2"}),
        ("device: RTX 4090\n", {"device.name": "RTX 4090"}),
        ("checkpointing: true\n", {"checkpointing.kind": "full"}),
        ("checkpointing: false\n", {"checkpointing.kind": "none"}),
        ("checkpointing: full\n", {"checkpointing.kind": "full"}),
        ("checkpointing: selective\n", {"checkpointing.kind": "selective"}),
        (
            "checkpointing: {kind: full, reentrant: false, every: 2}\n",
            {"checkpointing.kind": "full", "checkpointing.reentrant": False, "checkpointing.every": 2},
        ),
        ("adapter: {targets: [q_proj, v_proj]}\n", {"adapter.targets": ("q_proj", "v_proj")}),
        ("adapter: {targets: qv}\n", {"adapter.targets": ("qv",)}),
        ("adapter: {modules_to_save: lm_head}\n", {"adapter.modules_to_save": ("lm_head",)}),
        ("clip: null\n", {}),
        ("clip: 1\n", {"clip": 1.0}),
        ("optimizer: {lr: 1e-5}\n", {"optimizer.lr": 1e-5}),
        ("seed: 0\n", {"seed": 0}),
        (
            "sharding: {kind: zero3, offload_optimizer: cpu}\n",
            {"sharding.kind": "zero3", "sharding.offload_optimizer": "cpu"},
        ),
        ("sharding: {offload_optimizer: true}\n", {"sharding.offload_optimizer": "cpu"}),
        ("sharding: {offload_parameters: false}\n", {"sharding.offload_parameters": "none"}),
        ("sharding: {reduce_bucket: 5e8}\n", {"sharding.reduce_bucket": 500_000_000}),
        ("length: {packing: yes}\n", {"length.packing": True}),
        (
            "versions: {transformers: '4.57', flash-attn: 2.8.0}\n",
            {"versions.transformers": "4.57", "versions.flash-attn": "2.8.0"},
        ),
        (
            "data: {rows: 52000, tokens: {p50: 180, max: 900}}\n",
            {"data.rows": 52000, "data.tokens.p50": 180, "data.tokens.max": 900},
        ),
        ("model: {shape: {layers: 2, tied: true}}\n", {"model.shape.layers": 2, "model.shape.tied": True}),
        ("profile: teaching\n", {"profile": "teaching"}),
        ("batch.micro: 3\n", {"batch.micro": 3}),
    ],
)
def test_every_form_of_a_value(text: str, values: dict[str, object]) -> None:
    assert faults(text) == []
    assert read(text) == values


@pytest.mark.parametrize(
    ("text", "path", "number"),
    [
        ("device: {memory: 24 GiB}\n", "device.memory", 24 << 30),
        ("device: {memory: 24GB}\n", "device.memory", 24_000_000_000),
        ("device: {host_memory: 0.5 TiB}\n", "device.host_memory", 1 << 39),
        ("model: {parameters: 8e9 parameters}\n", "model.parameters", 8_000_000_000),
        ("model: {parameters: 8 Gparams}\n", "model.parameters", 8_000_000_000),
        ("length: {max: 2 kilotoken}\n", "length.max", 2000),
        ("batch: {micro: 4 samples}\n", "batch.micro", 4),
        ("schedule: {epochs: 3 epochs}\n", "schedule.epochs", 3.0),
        ("evaluation: {every: 500 steps}\n", "evaluation.every", 500.0),
    ],
)
def test_quantities_in_their_unit(text: str, path: str, number: float) -> None:
    assert faults(text) == []
    assert read(text) == {path: number}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("bath: {micro: 2}\n", (2, 1, "a run has no `bath`, did you mean `batch`")),
        ("batch: {micros: 2}\n", (2, 9, "a run has no `batch.micros`, did you mean `batch.micro`")),
        ("zzz: 1\n", (2, 1, "a run has no `zzz`")),
        ("batch: 2\n", (2, 8, "`batch` is a group of values")),
        ("batch: {micro: many}\n", (2, 16, "`batch.micro` is a number of samples with its unit, not `many`")),
        ("batch: {micro: 2.5}\n", (2, 16, "`batch.micro` is a whole number, not `2.5`")),
        ("batch: {micro: true}\n", (2, 16, "`batch.micro` is a whole number, not `true`")),
        ("batch: {micro: [2]}\n", (2, 16, "`batch.micro` is a whole number")),
        ("device: {memory: 24}\n", (2, 18, "`device.memory` is a size with its unit, like `24 GiB`, not `24`")),
        (
            "device: {memory: 24 tokens}\n",
            (2, 18, "`device.memory` is a number of bytes with its unit, not `24 tokens`"),
        ),
        ("length: {max: 2 GiB}\n", (2, 15, "`length.max` is a number of tokens with its unit, not `2 GiB`")),
        ("length: {max: 2.5 tokens}\n", (2, 15, "`length.max` is a whole number of tokens, not `2.5 tokens`")),
        ("batch: {micro: -1}\n", (2, 16, "`batch.micro` is a number of samples, none or more, not `-1`")),
        ("method: finetune\n", (2, 9, "`method` is one of full, lora, qlora, freeze, not `finetune`")),
        ("length: {packing: 7}\n", (2, 19, "`length.packing` is true or false, not `7`")),
        ("optimizer: [sgd]\n", (2, 12, "`optimizer` is a group of values")),
        ("optimizer: {name: 3}\n", (2, 19, "`optimizer.name` is a word, not `3`")),
        ("checkpointing: often\n", (2, 16, "`checkpointing` is true, false, full or selective, not `often`")),
        ("adapter: {targets: {a: 1}}\n", (2, 20, "`adapter.targets` is a list of names")),
        ("model: {shape: {depth: 2}}\n", (2, 17, "a run has no `model.shape.depth`")),
    ],
)
def test_faults_have_a_place(text: str, fault: tuple[int, int, str]) -> None:
    found = the_fault(text)
    assert found[:2] == fault[:2]
    assert found[2].startswith(fault[2])


def test_one_fault_does_not_hide_the_rest() -> None:
    found = fragment("trainlint: run\nbath: 1\nmethod: full\nlength: {maxx: 2}\nclip: x\n")
    assert {path: value.value for path, value in found.values.items()} == {"method": "full"}
    assert len(faults("bath: 1\nmethod: full\nlength: {maxx: 2}\nclip: x\n")) == 3


def test_a_config_is_a_reference(tmp_path: Path) -> None:
    found = fragment("trainlint: run\nmodel: {config: models/tiny}\n")
    assert [(one.role, one.text, one.key) for one in found.references] == [("model", "models/tiny", "model.config")]
    assert found.facts["faults"] == []


def test_a_config_may_be_written_out() -> None:
    assert read("model: {config: {model_type: llama, hidden_size: 8}}\n") == {
        "model.config": {"model_type": "llama", "hidden_size": 8}
    }


def test_what_holds_where_nothing_is_written() -> None:
    made = draft("trainlint: run\nprecision: {weights: float32}\n")
    said = {path: (value.value, value.origin) for path, value in made.values.items()}
    assert said == {
        "precision.weights": ("float32", "written"),
        "precision.compute": ("float32", "default"),
        "precision.autocast": (False, "derived"),
        "method": ("full", "default"),
        "checkpointing.kind": ("none", "default"),
        "attention": ("sdpa", "default"),
        "loss": ("full", "default"),
        "objective": ("sft", "default"),
        "batch.accumulation": (1, "default"),
    }


def test_autocast_is_where_compute_differs_from_the_weights() -> None:
    made = draft("trainlint: run\nprecision: {weights: float32, compute: bfloat16}\n")
    assert made.get("precision.autocast") is True
    assert made.get("precision.compute") == "bfloat16"
    written = draft("trainlint: run\nprecision: {weights: bfloat16, compute: bfloat16, autocast: true}\n")
    assert written.get("precision.autocast") is True


def test_nothing_of_precision_is_guessed() -> None:
    made = draft("trainlint: run\nmethod: lora\n")
    assert not made.has("precision.weights")
    assert not made.has("precision.compute")
    assert made.get("adapter.dtype") == "float32"
    assert not draft("trainlint: run\n").has("adapter.dtype")


def test_an_empty_run_file_is_a_run() -> None:
    found: Fragment = fragment("trainlint: run\n")
    assert found.launches
    assert found.values == {}
