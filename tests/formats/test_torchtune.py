"""torchtune recipes: which documents are one, and the run they give."""

from __future__ import annotations

import pytest

from trainlint.documents import Document, from_text
from trainlint.facts import models
from trainlint.formats import Draft, Fragment
from trainlint.formats.reading import schema
from trainlint.formats.torchtune import FORMAT
from trainlint.run import Value, build

QLORA = """
output_dir: /tmp/out
model:
  _component_: torchtune.models.llama3_1.qlora_llama3_1_8b
  lora_attn_modules: ['q_proj', 'output_proj']
  apply_lora_to_mlp: True
  lora_rank: 16
  lora_alpha: 32
tokenizer:
  _component_: torchtune.models.llama3.llama3_tokenizer
  max_seq_len: 2048
checkpointer:
  _component_: torchtune.training.FullModelHFCheckpointer
  checkpoint_dir: /tmp/Llama-3.1-8B
  output_dir: ${output_dir}
dataset:
  _component_: torchtune.datasets.alpaca_dataset
  packed: True
batch_size: 2
batch_size_val: ${batch_size}
gradient_accumulation_steps: 4
epochs: 1
optimizer:
  _component_: torch.optim.AdamW
  fused: True
  lr: 3e-4
loss:
  _component_: torchtune.modules.loss.LinearCrossEntropyLoss
enable_activation_checkpointing: True
dtype: bf16
"""
FULL = """
model:
  _component_: torchtune.models.qwen2_5.qwen2_5_7b_instruct
checkpointer:
  checkpoint_dir: /tmp/Qwen2.5-7B-Instruct
batch_size: 1
optimizer:
  _component_: bitsandbytes.optim.PagedAdamW8bit
  lr: 1e-5
optimizer_in_bwd: True
loss:
  _component_: torch.nn.CrossEntropyLoss
dtype: bf16
"""


def document(text: str) -> Document:
    return from_text("recipe.yaml", text, "yaml")


def fragment_of(text: str) -> Fragment:
    doc = document(text)
    return FORMAT.read(doc, doc.roots[0])


def completed(text: str, **known: object) -> Draft:
    """The draft of a config alone; `known` are values from elsewhere, `__` for the dot."""
    fragment = fragment_of(text)
    given: dict[str, Value[object]] = {path.replace("__", "."): Value(value) for path, value in known.items()}
    draft = Draft([fragment], {**fragment.values, **given})
    FORMAT.complete(draft)
    build("recipe.yaml", FORMAT.name, (), draft.values, draft.possible)
    return draft


def test_qlora_is_of_one_dtype_beside_the_quantized_base() -> None:
    draft = completed(QLORA, device__count=1)
    expected = {
        "framework": "torchtune",
        "model.id": "meta-llama/Llama-3.1-8B",
        "method": "qlora",
        "adapter.rank": 16,
        "adapter.targets": ("q_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
        "adapter.dtype": "bfloat16",
        "quantization.bits": 4,
        "quantization.type": "nf4",
        "precision.weights": "bfloat16",
        "precision.compute": "bfloat16",
        "precision.autocast": False,
        "batch.micro": 2,
        "batch.eval": 2,
        "batch.accumulation": 4,
        "length.max": 2048,
        "length.packing": True,
        "checkpointing.kind": "full",
        "loss": "torchtune-chunked",
        "objective": "sft",
        "optimizer.name": "adamw_torch_fused",
        "optimizer.lr": 3e-4,
        "sharding.kind": "none",
        "clip": 0.0,
        "checkpoint.output": "/tmp/out",
    }
    assert {path: draft.get(path) for path in expected} == expected


def test_full_steps_in_the_backward_pass() -> None:
    draft = completed(FULL)
    assert draft.get("model.id") == "Qwen/Qwen2.5-7B"
    assert draft.get("method") == "full"
    assert draft.get("optimizer.name") == "paged_adamw_8bit"
    assert draft.get("optimizer.in_backward") is True
    assert draft.get("loss") == "full"
    assert not draft.has("length.max")


def test_the_recipe_decides_whether_states_are_sharded() -> None:
    assert {value.value for value in completed(FULL).possible["sharding.kind"]} == {"none", "fsdp2"}
    assert completed(FULL, device__count=8).get("sharding.kind") == "fsdp2"
    assert completed(FULL + "fsdp_cpu_offload: True\n").get("sharding.offload_optimizer") == "cpu"
    assert completed(FULL + "fsdp_cpu_offload: True\n").get("sharding.kind") == "fsdp2"


def test_fused_projections_are_named_as_hugging_face_does() -> None:
    text = QLORA.replace("llama3_1.qlora_llama3_1_8b", "phi3.lora_phi3_mini")
    assert completed(text).get("adapter.targets") == ("qkv_proj", "o_proj", "gate_up_proj", "down_proj")
    assert completed(text).get("method") == "lora"


def test_dpo_pairs_need_a_reference() -> None:
    text = QLORA.replace("torchtune.modules.loss.LinearCrossEntropyLoss", "torchtune.rlhf.loss.DPOLoss")
    draft = completed(text)
    assert (draft.get("objective"), draft.get("reference"), draft.get("loss")) == ("dpo", "adapter-off", "full")


def test_an_evaluation_starts_no_run() -> None:
    text = (
        "model:\n  _component_: torchtune.models.mistral.mistral_7b\ncheckpointer:\n  checkpoint_dir: x\ndtype: bf16\n"
    )
    doc = document(text)
    assert FORMAT.recognise(doc, doc.roots[0]) >= 80
    assert not fragment_of(text).launches
    assert fragment_of(FULL).launches


def test_an_unknown_builder_names_no_model() -> None:
    fragment = fragment_of(FULL.replace("torchtune.models.qwen2_5.qwen2_5_7b_instruct", "mine.models.tiny"))
    assert "model.id" not in fragment.values
    assert [one.text for one in fragment.references if one.role == "model"] == ["/tmp/Qwen2.5-7B-Instruct"]


def test_builders_name_models() -> None:
    for builder, name in schema("torchtune")["x-builders"]["models"].items():
        if "vision" not in builder and "maverick" not in builder:
            assert models.find(name) is not None, (builder, name)


@pytest.mark.parametrize(
    "text",
    [
        "model:\n  _target_: a.b\nbatch_size: 1\n",
        "model: torchtune\nbatch_size: 1\n",
        "model: {name: x}\ncheckpointer: {dir: y}\n",
        "[1, 2]\n",
    ],
)
def test_look_alikes_are_left_alone(text: str) -> None:
    doc = document(text)
    assert FORMAT.recognise(doc, doc.roots[0]) < 40
