import pytest

from .drafting import fragments

GROUPED = "training_args:\n  output_dir: o\n  num_train_epochs: 1\n  bf16: true\n  optim: sgd\n  seed: 1\n"
SFT = "model_name_or_path: org/model\nper_device_train_batch_size: 2\nlearning_rate: 2.0e-5\noutput_dir: out\n"


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("train.yaml", SFT, "hf-trainer"),
        ("train.yaml", SFT + "use_peft: true\nlora_r: 8\n", "trl"),
        ("train.yaml", GROUPED, "hf-trainer"),
        ("ds.json", '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": "auto"}}', "deepspeed"),
        ("ds.json", '{"train_batch_size": 8, "fp16": {"enabled": true}}', "deepspeed"),
        ("acc.yaml", "compute_environment: LOCAL_MACHINE\ndistributed_type: 'NO'\nnum_processes: 1\n", "accelerate"),
        ("acc.yaml", "distributed_type: FSDP\nmixed_precision: bf16\n", "accelerate"),
        ("fsdp.json", '{"backward_prefetch": "backward_pre", "activation_checkpointing": true}', "accelerate"),
        ("adapter_config.json", '{"peft_type": "LORA", "r": 8, "task_type": "CAUSAL_LM"}', "peft-adapter"),
        ("config.json", '{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2}', "model-config"),
        ("config.json", '{"architectures": ["GPT2LMHeadModel"], "n_embd": 64, "vocab_size": 100}', "model-config"),
    ],
)  # fmt: skip
def test_a_config_is_known_by_its_content(file, text, expected):
    assert [one.format for one in fragments(text, file)] == [expected]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        # a filter over generations: a model and sampling, nothing that trains
        ("filter.yaml", "model_name_or_path: org/model\nnum_generations: 4\nreward_funcs: [accuracy]\n"),
        ("ci.yaml", "name: tests\non: [push]\njobs:\n  test:\n    runs-on: ubuntu-latest\n"),
        ("prep.json", '{"crop_size": 224, "image_mean": [0.5], "feature_extractor_type": "X"}'),
        ("package.json", '{"name": "x", "version": "1.0.0", "optimizer": "terser"}'),
        ("neox.yaml", "pipe_parallel_size: 1\ntrain_micro_batch_size_per_gpu: 4\nzero_optimization: {stage: 1}\n"),
        ("swift.yaml", "model: org/model\ntrain_type: lora\nlearning_rate: 1e-4\nsave_steps: 5\nbf16: true\nseed: 1\n"),
        ("notes.yaml", "learning_rate: 0.1\nseed: 3\n"),
        ("scalar.yaml", "just text\n"),
    ],
)  # fmt: skip
def test_what_is_no_config_of_these_is_left_alone(file, text):
    own = {"hf-trainer", "trl", "deepspeed", "accelerate", "peft-adapter", "model-config"}
    assert not [one.format for one in fragments(text, file) if one.format in own]
