"""Axolotl configs: which documents are one, and the run they give."""

from __future__ import annotations

import pytest

from trainlint.documents import Document, from_text
from trainlint.formats import Draft
from trainlint.formats.axolotl import FORMAT
from trainlint.run import Value, build

QLORA = """
base_model: NousResearch/Llama-3.2-1B
load_in_4bit: true
adapter: qlora
lora_r: 16
lora_alpha: 32
lora_target_linear: true
datasets:
  - path: data/train.jsonl
    ds_type: json
    type: chat_template
val_set_size: 0.05
sequence_len: 2048
sample_packing: true
micro_batch_size: 2
gradient_accumulation_steps: 4
num_epochs: 1
optimizer: paged_adamw_8bit
learning_rate: 2e-4
bf16: auto
gradient_checkpointing: true
flash_attention: true
"""
FULL = """
base_model: Qwen/Qwen2.5-0.5B
datasets:
  - path: tatsu-lab/alpaca
    type: alpaca
micro_batch_size: 4
batch_size: 32
sequence_len: 1024
learning_rate: 1e-5
bf16: true
"""


def document(text: str) -> Document:
    return from_text("train.yaml", text, "yaml")


def completed(text: str, **versions: str) -> Draft:
    """The draft of a config alone, with the defaults of these releases."""
    doc = document(text)
    fragment = FORMAT.read(doc, doc.roots[0])
    known: dict[str, Value[str]] = {name.replace("_", "-"): Value(text) for name, text in versions.items()}
    draft = Draft([fragment], dict(fragment.values), known)
    FORMAT.complete(draft)
    build("train.yaml", FORMAT.name, (), draft.values, draft.possible)
    return draft


def test_qlora_gives_the_quantized_run() -> None:
    draft = completed(QLORA)
    assert {path: draft.get(path) for path in EXPECTED} == EXPECTED


EXPECTED = {
    "framework": "axolotl",
    "model.id": "NousResearch/Llama-3.2-1B",
    "method": "qlora",
    "adapter.rank": 16,
    "adapter.targets": ("all-linear",),
    "adapter.dtype": "float32",
    "quantization.bits": 4,
    "quantization.type": "nf4",
    "quantization.double": True,
    "quantization.storage": "bfloat16",
    "quantization.prepared": False,
    "precision.weights": "bfloat16",
    "precision.compute": "bfloat16",
    "precision.autocast": True,
    "batch.micro": 2,
    "batch.accumulation": 4,
    "batch.eval": 2,
    "length.max": 2048,
    "length.packing": True,
    "length.padded": False,
    "checkpointing.kind": "full",
    "checkpointing.reentrant": True,
    "attention": "flash",
    "loss": "full",
    "optimizer.name": "paged_adamw_8bit",
    "optimizer.lr": 2e-4,
    "sharding.kind": "none",
    "objective": "sft",
    "data.chat": True,
    "data.names": ("data/train.jsonl",),
    "evaluation.strategy": "epoch",
}


def test_written_values_know_their_place() -> None:
    draft = completed(QLORA)
    value = draft.values["batch.micro"]
    assert value.place is not None
    assert (value.place.line, value.raw, value.written) == (15, "2", True)
    assert not draft.values["precision.autocast"].written


def test_bf16_casts_the_weights_of_a_full_run_and_keeps_no_master_copy() -> None:
    draft = completed(FULL)
    assert draft.get("method") == "full"
    assert draft.get("precision.weights") == "bfloat16"
    assert draft.get("precision.autocast") is True
    assert not draft.has("precision.master")


def test_embeddings_stay_in_float32_without_flash_attention() -> None:
    assert completed(FULL).get("precision.embeddings") == "float32"
    assert not completed(FULL + "flash_attention: true\n").has("precision.embeddings")
    cut = "plugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]\n"
    assert not completed(FULL + cut).has("precision.embeddings")
    assert completed(FULL + cut).get("loss") == "cut-ce"


def test_batch_size_is_global_and_gives_the_accumulation() -> None:
    assert completed(FULL).get("batch.accumulation") == 8


@pytest.mark.parametrize(
    ("lines", "weights", "autocast"),
    [
        ("bf16: false\nfp16: true", "float16", True),
        ("bf16: false", "float32", False),
        ("bf16: full", "bfloat16", False),
        ("bfloat16: true\nbf16: false", "bfloat16", False),
    ],
)
def test_precision_flags(lines: str, weights: str, autocast: bool) -> None:
    draft = completed(FULL.replace("bf16: true", lines))
    assert (draft.get("precision.weights"), draft.get("precision.autocast")) == (weights, autocast)


def test_the_default_optimizer_changed() -> None:
    assert completed(FULL, axolotl="0.7.0").get("optimizer.name") == "adamw_hf"
    assert completed(FULL, axolotl=">=0.9").get("optimizer.name") == "adamw_torch_fused"
    assert {value.value for value in completed(FULL).possible["optimizer.name"]} == {"adamw_hf", "adamw_torch_fused"}


def test_fsdp_lifts_what_trains_to_float32() -> None:
    draft = completed(FULL + "fsdp_version: 2\nfsdp_config:\n  offload_params: true\n  reshard_after_forward: true\n")
    assert draft.get("sharding.kind") == "fsdp2"
    assert draft.get("precision.weights") == "float32"
    assert draft.get("precision.compute") == "bfloat16"
    assert draft.get("sharding.offload_parameters") == "cpu"


def test_a_shipped_deepspeed_config_is_known_by_its_name() -> None:
    draft = completed(FULL + "deepspeed: deepspeed_configs/zero3_bf16_cpuoffload_all.json\n")
    assert draft.get("sharding.kind") == "zero3"
    assert draft.get("sharding.offload_optimizer") == "cpu"
    assert draft.get("precision.master") == "float32"


def test_of_another_deepspeed_config_the_stage_is_open() -> None:
    draft = completed(FULL + "deepspeed: my_stage.json\n")
    assert {value.value for value in draft.possible["sharding.kind"]} == {"zero1", "zero2", "zero3"}


def test_an_inline_deepspeed_config_is_read() -> None:
    draft = completed(FULL + "deepspeed:\n  zero_optimization:\n    stage: 2\n")
    assert draft.get("sharding.kind") == "zero2"


@pytest.mark.parametrize(
    ("lines", "reference"),
    [
        ("rl: dpo", "copy"),
        ("rl: dpo\nadapter: lora\nlora_r: 8", "adapter-off"),
        ("rl: orpo", "none"),
        ("rl: dpo\nprecompute_ref_log_probs: true", "precomputed"),
    ],
)
def test_preference_methods_load_a_second_model_unless_an_adapter_can_be_switched_off(
    lines: str, reference: str
) -> None:
    assert completed(f"{FULL}{lines}\n").get("reference") == reference


def test_offloading_replaces_recomputing_with_an_adapter() -> None:
    text = FULL + "adapter: lora\nlora_r: 8\ngradient_checkpointing: true\nactivation_offloading: true\n"
    assert completed(text).get("checkpointing.kind") == "none"
    assert completed(text).get("activation_offload") is True


def test_a_pattern_names_no_modules() -> None:
    draft = completed(FULL + "adapter: lora\nlora_r: 8\nlora_target_modules: 'layers.[0-9]+.(up|down)_proj'\n")
    assert not draft.has("adapter.targets")


@pytest.mark.parametrize(
    "text",
    [
        "base_model: a/b\nmodels:\n  - model: a/b\nmerge_method: slerp\n",
        "model_name_or_path: a/b\nmicro_batch_size: 1\nsequence_len: 10\n",
        "- base_model\n- datasets\n",
        "base_model:\n  name: x\ndatasets: []\n",
    ],
)
def test_look_alikes_are_left_alone(text: str) -> None:
    doc = document(text)
    assert FORMAT.recognise(doc, doc.roots[0]) < 40


def test_recognised() -> None:
    for text in (QLORA, FULL):
        doc = document(text)
        assert FORMAT.recognise(doc, doc.roots[0]) >= 80


def test_a_checkpoint_that_is_quantized_already_makes_lora_qlora() -> None:
    doc = document(FULL + "adapter: lora\nlora_r: 8\n")
    fragment = FORMAT.read(doc, doc.roots[0])
    draft = Draft([fragment], {**fragment.values, "model.quantized": Value("nvfp4")})
    FORMAT.complete(draft)
    assert (draft.get("method"), draft.get("quantization.bits")) == ("qlora", 4)
