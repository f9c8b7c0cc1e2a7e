"""NeMo 1.x configs and AutoModel's recipes."""

from __future__ import annotations

import pytest

from .drafting import draft, fragment, fragments, options

MEGATRON = """
trainer: {devices: 8, num_nodes: 2, precision: bf16, max_steps: 100, gradient_clip_val: 1.0}
exp_manager: {explicit_log_dir: "${training.run.results_dir}/results"}
model:
  micro_batch_size: 1
  global_batch_size: 128
  tensor_model_parallel_size: 4
  pipeline_model_parallel_size: 1
  encoder_seq_length: 4096
  num_layers: 32
  hidden_size: 4096
  megatron_amp_O2: true
  activations_checkpoint_granularity: selective
  restore_from_path: ???
  data: {seq_length: "${training.model.encoder_seq_length}"}
  optim: {name: mcore_distributed_optim, lr: 1e-4, betas: [0.9, 0.95]}
"""
LORA = """
trainer: {devices: 1, precision: bf16-mixed}
exp_manager: {name: x}
model:
  micro_batch_size: 1
  peft: {peft_scheme: lora, lora_tuning: {adapter_dim: 16}}
  data: {train_ds: {max_seq_length: 2048, micro_batch_size: "${peft.model.micro_batch_size}"}}
  optim: {name: fused_adam}
"""
RECIPE = """
recipe: TrainFinetuneRecipeForNextTokenPrediction
step_scheduler: {global_batch_size: 64, local_batch_size: 8}
model:
  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained
  pretrained_model_name_or_path: meta-llama/Llama-3.2-1B
  torch_dtype: torch.bfloat16
distributed: {strategy: fsdp2, dp_size: none, tp_size: 2, cp_size: 1, activation_checkpointing: true}
packed_sequence: {packed_sequence_size: 4096}
loss_fn: {_target_: nemo_automodel.components.loss.masked_ce.MaskedCrossEntropy}
optimizer: {_target_: torch.optim.AdamW, lr: 1e-5}
"""


def test_megatron_states_and_degrees() -> None:
    made = draft(MEGATRON)
    wanted = {
        "parallel.tensor": 4,
        "parallel.data": 4,
        "batch.accumulation": 32,
        "length.max": 4096,
        "length.packing": True,
        "objective": "pretrain",
        "precision.weights": "bfloat16",
        "precision.gradients": "float32",
        "precision.master": "float32",
        "sharding.kind": "zero1",
        "checkpointing.kind": "selective",
        "optimizer.beta2": 0.95,
        "model.shape.layers": 32,
        "model.id": None,
    }
    assert {path: made.get(path) for path in wanted} == wanted


def test_without_o2_it_is_autocast() -> None:
    made = draft(MEGATRON.replace("megatron_amp_O2: true", "megatron_amp_O2: false"))
    assert [made.get(f"precision.{name}") for name in ("weights", "compute", "autocast")] == [
        "float32",
        "bfloat16",
        True,
    ]


def test_a_peft_scheme() -> None:
    made = draft(LORA)
    assert (made.get("method"), made.get("adapter.rank"), made.get("objective")) == ("lora", 16, "sft")
    assert made.get("batch.micro") == 1  # `${peft.model.…}`: the launcher puts the file under `peft`


def test_the_launchers_list_of_stages_starts_no_run() -> None:
    text = "defaults: [_self_, {training: gpt3/5b}]\nstages: [training]\nlauncher_scripts_path: x\n"
    assert (fragment(text).format, fragment(text).launches) == ("nemo", False)


def test_a_recipe() -> None:
    made = draft(RECIPE, known={"device.count": 8})
    wanted = {
        "model.id": "meta-llama/Llama-3.2-1B",
        "method": "full",
        "parallel.tensor": 2,
        "parallel.data": 4,
        "batch.micro": 8,
        "batch.accumulation": 2,
        "length.max": 4096,
        "length.packing": True,
        "precision.weights": "bfloat16",
        "precision.compute": "bfloat16",
        "sharding.kind": "fsdp2",
        "checkpointing.kind": "full",
        "optimizer.name": "adamw_torch",
        "loss": "full",
    }
    assert {path: made.get(path) for path in wanted} == wanted


@pytest.mark.parametrize(
    ("peft", "targets"),
    [
        ("match_all_linear: true", ("all-linear",)),
        ('target_modules: ["*"]', ("all-linear",)),
        ('target_modules: ["*_proj"]', None),
        ('target_modules: ["*.q_proj", "*.v_proj"]', ("q_proj", "v_proj")),
        ('target_modules: ["layers.*.q_proj"]', None),
    ],
)
def test_a_recipes_adapter(peft: str, targets: tuple[str, ...] | None) -> None:
    made = draft(RECIPE + f"peft: {{_target_: nemo_automodel.components._peft.lora.PeftConfig, dim: 8, {peft}}}\n")
    assert made.get("method") == "lora"
    assert made.get("adapter.dtype") == "bfloat16"
    assert made.get("adapter.targets") == targets


def test_a_recipe_without_dtype_takes_the_checkpoints() -> None:
    made = draft(RECIPE.replace("  torch_dtype: torch.bfloat16\n", ""))
    assert options(made, "precision.weights") == {"bfloat16", "float32"}


def test_what_only_looks_like_it() -> None:
    assert not fragments("trainer: {name: x}\nexperiment: {name: y}\n")
    assert not fragments("step_scheduler: {name: cosine}\nmodel: {name: y}\n")
