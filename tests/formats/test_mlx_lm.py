"""MLX-LM configs: which documents are one, and the run they give."""

from __future__ import annotations

import pytest

from trainlint.documents import Document, from_text
from trainlint.formats import Draft, Fragment
from trainlint.formats.mlx_lm import FORMAT
from trainlint.run import Value, build

LORA = """
model: mlx-community/Qwen3-4B-4bit
train: true
fine_tune_type: lora
data: data
num_layers: 8
batch_size: 4
iters: 600
learning_rate: 1e-5
max_seq_length: 1024
grad_checkpoint: true
adapter_path: adapters
lora_parameters:
  keys: [self_attn.q_proj, self_attn.v_proj]
  rank: 16
  scale: 20.0
  dropout: 0.0
"""


def document(text: str) -> Document:
    return from_text("lora.yaml", text, "yaml")


def fragment_of(text: str) -> Fragment:
    doc = document(text)
    return FORMAT.read(doc, doc.roots[0])


def completed(text: str, version: str = "", **known: object) -> Draft:
    """The draft of a config alone; `known` are values from elsewhere, `__` for the dot."""
    fragment = fragment_of(text)
    given: dict[str, Value[object]] = {path.replace("__", "."): Value(value) for path, value in known.items()}
    draft = Draft([fragment], {**fragment.values, **given}, {"mlx-lm": Value(version)} if version else {})
    FORMAT.complete(draft)
    build("lora.yaml", FORMAT.name, (), draft.values, draft.possible)
    return draft


def test_float32_adapters_on_the_last_blocks_of_a_quantized_checkpoint() -> None:
    draft = completed(LORA)
    expected = {
        "framework": "mlx-lm",
        "model.id": "mlx-community/Qwen3-4B-4bit",
        "method": "qlora",
        "adapter.layers": 8,
        "adapter.rank": 16,
        "adapter.targets": ("self_attn.q_proj", "self_attn.v_proj"),
        "adapter.dtype": "float32",
        "quantization.bits": 4,
        "precision.autocast": False,
        "batch.micro": 4,
        "batch.accumulation": 1,
        "length.max": 1024,
        "checkpointing.kind": "full",
        "optimizer.lr": 1e-5,
        "schedule.max_steps": 600,
        "device.unified": True,
        "objective": "sft",
        "sharding.kind": "none",
    }
    assert {path: draft.get(path) for path in expected} == expected
    assert draft.values["precision.weights"].origin == "assumed"


def test_the_checkpoint_decides_the_dtype() -> None:
    draft = completed(LORA.replace("-4bit", ""), model__dtype="float16")
    assert (draft.get("method"), draft.get("precision.weights")) == ("lora", "float16")


def test_full_trains_the_last_sixteen_blocks_only() -> None:
    text = LORA.replace("fine_tune_type: lora", "fine_tune_type: full").replace("num_layers: 8\n", "")
    draft = completed(text)
    assert (draft.get("method"), draft.get("adapter.layers")) == ("freeze", 16)


def test_adapted_layers_by_release() -> None:
    text = LORA.replace("  keys: [self_attn.q_proj, self_attn.v_proj]\n", "")
    assert completed(text, "0.32.2").get("adapter.targets") == ("all-linear",)
    assert completed(text, "0.20.6").get("adapter.targets") == ("q_proj", "v_proj")
    assert len(completed(text).possible["adapter.targets"]) == 2


def test_the_batch_is_shared_out_over_workers() -> None:
    assert completed(LORA, parallel__world=2).get("batch.micro") == 2


def test_iterations_count_batches() -> None:
    assert completed(LORA + "grad_accumulation_steps: 4\n").get("schedule.max_steps") == 150


def test_a_test_starts_no_run() -> None:
    assert not fragment_of(LORA.replace("train: true", "train: false\ntest: true")).launches


@pytest.mark.parametrize(
    "text",
    ["iters: 5\nbenchmark: matmul\n", "model: a\ndata: b\ntrain: true\n", "num_layers: 4\nhidden_size: 8\n", "[]\n"],
)
def test_look_alikes_are_left_alone(text: str) -> None:
    doc = document(text)
    assert FORMAT.recognise(doc, doc.roots[0]) < 40


def test_recognised() -> None:
    old = "model: mlx_model\ntrain: true\nlora_layers: 16\niters: 100\nadapter_file: a.npz\nsteps_per_eval: 10\n"
    for text in (LORA, old):
        doc = document(text)
        assert FORMAT.recognise(doc, doc.roots[0]) >= 80
