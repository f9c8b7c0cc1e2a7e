"""LLaMA-Factory configs: which documents are one, and the run they give."""

from __future__ import annotations

import pytest

from trainlint.documents import Document, from_text
from trainlint.formats import Draft, Fragment
from trainlint.formats.llamafactory import FORMAT
from trainlint.run import Value, build

LORA = """
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 16
lora_target: all
dataset: mine,identity
dataset_dir: data
template: qwen
output_dir: out
per_device_train_batch_size: 2
gradient_accumulation_steps: 8
learning_rate: 1e-4
bf16: true
"""
V1 = """
model: Qwen/Qwen3-0.6B
dist_config:
  name: fsdp2
train_dataset: data/sft.yaml
micro_batch_size: 2
cutoff_len: 2048
"""


def document(text: str) -> Document:
    return from_text("train.yaml", text, "yaml")


def fragment_of(text: str) -> Fragment:
    doc = document(text)
    return FORMAT.read(doc, doc.roots[0])


def completed(text: str, known: dict[str, Value[object]] | None = None, **versions: str) -> Draft:
    """The draft of a config alone, with the defaults of these releases."""
    fragment = fragment_of(text)
    draft = Draft([fragment], {**fragment.values, **(known or {})}, {name: Value(v) for name, v in versions.items()})
    FORMAT.complete(draft)
    build("train.yaml", FORMAT.name, (), draft.values, draft.possible)
    return draft


def test_lora_trains_float32_adapters_on_a_bfloat16_base() -> None:
    draft = completed(LORA, llamafactory="0.9.3")
    expected = {
        "framework": "llamafactory",
        "model.id": "Qwen/Qwen2.5-7B-Instruct",
        "method": "lora",
        "adapter.rank": 16,
        "adapter.alpha": 32.0,
        "adapter.targets": ("all-linear",),
        "adapter.dtype": "float32",
        "precision.weights": "bfloat16",
        "precision.compute": "bfloat16",
        "precision.autocast": True,
        "batch.micro": 2,
        "batch.accumulation": 8,
        "length.max": 2048,
        "length.packing": False,
        "checkpointing.kind": "full",
        "checkpointing.reentrant": True,
        "objective": "sft",
        "loss": "full",
        "sharding.kind": "none",
        "optimizer.lr": 1e-4,
        "data.names": ("mine", "identity"),
        "evaluation.strategy": "no",
    }
    assert {path: draft.get(path) for path in expected} == expected


def test_what_trains_is_lifted_to_float32_unless_pure_bf16() -> None:
    full = LORA.replace("finetuning_type: lora", "finetuning_type: full")
    assert completed(full).get("precision.weights") == "float32"
    pure = completed(full.replace("bf16: true", "pure_bf16: true"))
    assert (pure.get("precision.weights"), pure.get("precision.autocast")) == ("bfloat16", False)


def test_deepspeed_undoes_the_lift() -> None:
    full = LORA.replace("finetuning_type: lora", "finetuning_type: full")
    draft = completed(full + "deepspeed: examples/deepspeed/ds_z2_offload_config.json\n")
    assert draft.get("sharding.kind") == "zero2"
    assert draft.get("sharding.offload_optimizer") == "cpu"
    assert draft.get("precision.weights") == "bfloat16"
    assert draft.get("precision.master") == "float32"


def test_checkpointing_is_on_unless_disabled() -> None:
    assert completed(LORA + "gradient_checkpointing: false\n").get("checkpointing.kind") == "full"
    assert completed(LORA + "disable_gradient_checkpointing: true\n").get("checkpointing.kind") == "none"


def test_the_default_length_changed() -> None:
    assert completed(LORA, llamafactory="0.8.3").get("length.max") == 1024
    assert completed(LORA, llamafactory=">=0.9.1").get("length.max") == 2048
    assert {value.value for value in completed(LORA).possible["length.max"]} == {1024, 2048}


def test_quantized_base() -> None:
    draft = completed(LORA + "quantization_bit: 4\n")
    assert draft.get("method") == "qlora"
    assert (draft.get("quantization.type"), draft.get("quantization.double")) == ("nf4", True)
    assert draft.get("quantization.prepared") is False


def test_a_checkpoint_in_float32_stays_so_from_094_on() -> None:
    stored: dict[str, Value[object]] = {"model.dtype": Value("float32")}
    draft = completed(LORA, stored)
    assert {value.value for value in draft.possible["precision.weights"]} == {"bfloat16", "float32"}


@pytest.mark.parametrize(
    ("lines", "objective", "reference"),
    [
        ("stage: dpo\nfinetuning_type: lora", "dpo", "adapter-off"),
        ("stage: dpo\nfinetuning_type: full", "dpo", "copy"),
        ("stage: dpo\nfinetuning_type: full\npref_loss: orpo", "orpo", "none"),
        ("stage: rm\nfinetuning_type: lora", "reward", None),
        ("stage: pt\nfinetuning_type: lora", "pretrain", None),
    ],
)
def test_stages(lines: str, objective: str, reference: str | None) -> None:
    draft = completed(LORA.replace("stage: sft\n", "").replace("finetuning_type: lora\n", "") + lines + "\n")
    assert (draft.get("objective"), draft.get("reference")) == (objective, reference)
    assert draft.get("length.packing") is (objective == "pretrain")


def test_liger_fuses_the_loss_where_no_logits_are_needed() -> None:
    assert completed(LORA + "enable_liger_kernel: true\n").get("loss") == "liger"
    assert completed(LORA.replace("stage: sft", "stage: dpo") + "enable_liger_kernel: true\n").get("loss") == "full"


def test_references() -> None:
    found = {(one.role, one.text) for one in fragment_of(LORA + "deepspeed: ds.json\n").references}
    assert found == {("model", "Qwen/Qwen2.5-7B-Instruct"), ("deepspeed", "ds.json"), ("dataset-info", "data")}


def test_interpolations_are_resolved() -> None:
    text = LORA.replace("output_dir: out", "output_dir: out/${stage}").replace("lora_rank: 16", "lora_rank: ${rank}")
    fragment = fragment_of(text)
    assert fragment.values["checkpoint.output"].value == "out/sft"
    assert "adapter.rank" not in fragment.values


def test_chats_exports_and_predictions_start_no_run() -> None:
    chat = "model_name_or_path: a/b\ntemplate: llama3\ninfer_backend: vllm\n"
    export = "model_name_or_path: a/b\nadapter_name_or_path: c\ntemplate: llama3\nexport_dir: d\n"
    predict = LORA.replace("do_train", "do_predict")
    for text in (chat, export, predict):
        doc = document(text)
        assert FORMAT.recognise(doc, doc.roots[0]) >= 40
        assert not fragment_of(text).launches
    assert fragment_of(LORA).launches


def test_settings_of_a_training_are_taken_for_one_without_do_train() -> None:
    bare = "model_name_or_path: m\nstage: sft\nfinetuning_type: lora\ntemplate: qwen\ndataset: d\n"
    assert fragment_of(bare + "learning_rate: 1.0e-4\n").launches
    assert not fragment_of(bare).launches
    assert not fragment_of(bare + "learning_rate: 1.0e-4\ndo_train: false\n").launches
    assert not fragment_of(bare + "learning_rate: 1.0e-4\ndo_predict: true\n").launches


def test_the_second_layout() -> None:
    doc = document(V1)
    assert FORMAT.recognise(doc, doc.roots[0]) >= 80
    draft = completed(V1)
    assert draft.get("method") == "full"
    assert draft.get("sharding.kind") == "fsdp2"
    assert (draft.get("precision.weights"), draft.get("precision.compute")) == ("float32", "bfloat16")
    assert draft.get("batch.micro") == 2


def test_megatron_shards_by_its_own_rules() -> None:
    draft = completed(LORA + "tensor_model_parallel_size: 4\nuse_distributed_optimizer: true\n")
    assert draft.get("sharding.kind") is None
    assert draft.get("parallel.tensor") == 4


@pytest.mark.parametrize(
    "text",
    [
        "model_name_or_path: a/b\noutput_dir: o\nlearning_rate: 1e-5\nper_device_train_batch_size: 1\n",
        "model: a/b\ndataset: x\ntrain_type: lora\ntemplate: qwen\n",
        "model_name_or_path: a/b\nstage: build\ntemplate: page.html\n",
        "stage: sft\nscript: [make]\n",
        "template: x\n",
    ],
)
def test_look_alikes_are_left_alone(text: str) -> None:
    doc = document(text)
    assert FORMAT.recognise(doc, doc.roots[0]) < 40
