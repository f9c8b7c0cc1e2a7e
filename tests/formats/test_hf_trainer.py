import pytest

from .drafting import draft, fragment, options

BASE = """\
model_name_or_path: org/model
output_dir: out
per_device_train_batch_size: 4
gradient_accumulation_steps: 2
"""
FOUR = {"transformers": "4.46.0"}
FIVE = {"transformers": "5.24.0"}


def test_written_values_know_their_key_and_place():
    value = fragment(BASE + "bf16: true\n").values["batch.micro"]
    assert (value.value, value.key, value.place[1:3]) == (4, "per_device_train_batch_size", (3, 30))


def test_defaults_before_transformers_5():
    run = draft(BASE + "seed: 1\n", **FOUR)
    got = {
        path: run.get(path) for path in ("precision.weights", "precision.compute", "precision.autocast", "attention")
    }
    assert got == {
        "precision.weights": "float32",
        "precision.compute": "float32",
        "precision.autocast": False,
        "attention": "sdpa",
    }
    assert (run.get("clip"), run.get("optimizer.name"), run.get("checkpointing.kind")) == (1.0, "adamw_torch", "none")
    assert (run.get("sharding.kind"), run.get("method"), run.get("loss")) == ("none", "full", "shifted")
    assert not run.possible


def test_transformers_5_loads_the_dtype_of_the_checkpoint():
    assert draft(BASE, known={"model.dtype": "bfloat16"}, **FIVE).get("precision.weights") == "bfloat16"
    assert options(draft(BASE, **FIVE), "precision.weights") == {"bfloat16", "float32"}


def test_an_unknown_release_leaves_what_it_decides_open():
    run = draft(BASE, known={"model.dtype": "bfloat16"})
    assert options(run, "precision.weights") == {"float32", "bfloat16"}
    assert options(run, "optimizer.name") == {"adamw_torch", "adamw_torch_fused"}


@pytest.mark.parametrize(("flag", "compute", "scaled"), [("bf16", "bfloat16", False), ("fp16", "float16", True)])
def test_mixed_precision_is_autocast_over_the_weights_as_loaded(flag, compute, scaled):
    run = draft(BASE + f"{flag}: true\n", **FOUR)
    assert run.get("precision.weights") == "float32"
    assert (run.get("precision.compute"), run.get("precision.autocast")) == (compute, True)
    assert run.get("precision.grad_scaler") is scaled


def test_the_launcher_decides_mixed_precision_where_the_flags_are_silent():
    launcher = fragment("distributed_type: MULTI_GPU\nmixed_precision: bf16\nnum_processes: 4\n")
    run = draft(BASE, launcher, **FOUR)
    assert (run.get("precision.compute"), run.get("parallel.world")) == ("bfloat16", 4)


def test_reentrant_checkpointing_was_the_default_before_5():
    text = BASE + "gradient_checkpointing: true\n"
    assert draft(text, **FOUR).get("checkpointing.reentrant") is True
    assert draft(text, **FIVE).get("checkpointing.reentrant") is False
    explicit = text + "gradient_checkpointing_kwargs:\n  use_reentrant: false\n"
    assert draft(explicit, **FOUR).get("checkpointing.reentrant") is False


def test_negative_max_steps_leave_the_epochs():
    run = draft(BASE + "max_steps: -1\n", **FOUR)
    assert not run.has("schedule.max_steps")
    assert run.get("schedule.epochs") == 3.0


def test_yaml_no_is_a_strategy():
    assert draft(BASE + "save_strategy: no\neval_strategy: 'no'\n").get("checkpoint.strategy") == "no"


def test_evaluation_has_a_batch_only_where_it_runs():
    assert not draft(BASE).has("evaluation.batch")
    assert draft(BASE + "eval_strategy: steps\n").get("evaluation.batch") == 8


def test_an_inline_deepspeed_config_counts_with_its_places():
    text = BASE + "bf16: true\ndeepspeed:\n  zero_optimization:\n    stage: 3\n    reduce_bucket_size: auto\n"
    run = draft(text, known={"model.shape.hidden": 1000}, **FOUR)
    assert run.get("sharding.kind") == "zero3"
    assert run.values["sharding.kind"].place[1] == 8
    assert run.values["sharding.kind"].key == "deepspeed.zero_optimization.stage"
    assert run.get("sharding.reduce_bucket") == 1_000_000
    assert run.get("sharding.prefetch_bucket") == 50_000_000


def test_deepspeed_casts_the_model_and_keeps_a_float32_copy():
    engine = fragment('{"zero_optimization": {"stage": 2}, "bf16": {"enabled": "auto"}}', "ds.json")
    run = draft(BASE + "bf16: true\ntorch_dtype: float32\ndeepspeed: ds.json\n", engine, **FOUR)
    got = {name: run.get(f"precision.{name}") for name in ("weights", "compute", "gradients", "master", "moments")}
    assert got == {
        "weights": "bfloat16",
        "compute": "bfloat16",
        "gradients": "bfloat16",
        "master": "float32",
        "moments": "float32",
    }
    assert run.get("precision.autocast") is False
    assert run.get("sharding.reduce_bucket") == 500_000_000


def test_deepspeed_can_keep_masters_and_moments_in_the_low_dtype():
    engine = fragment(
        '{"zero_optimization": {"stage": 1}, "bf16": {"enabled": true, "bf16_master_weights_and_grads": true,'
        ' "bf16_optimizer_states": true}}',
        "ds.json",
    )
    run = draft(BASE + "bf16: true\n", engine, **FOUR)
    assert (run.get("precision.master"), run.get("precision.moments")) == ("none", "bfloat16")


def test_an_engine_that_was_not_read_stays_unknown():
    assert not draft(BASE + "deepspeed: elsewhere.json\n", **FOUR).has("sharding.kind")


def test_deepspeeds_optimizer_section_wins_over_optim():
    engine = fragment(
        '{"zero_optimization": {"stage": 2}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}', "ds.json"
    )
    run = draft(BASE + "optim: adafactor\n", engine, **FOUR)
    assert run.get("optimizer.name") == "adamw_torch_fused"
    assert [loser.value for loser in run.values["optimizer.name"].losers] == ["adafactor"]


def test_fsdp_lifts_trainable_weights_to_float32():
    text = BASE + "bf16: true\ntorch_dtype: bfloat16\nfsdp: full_shard auto_wrap\n"
    run = draft(text, transformers="4.46.0", accelerate="1.0.0")
    assert (run.get("sharding.kind"), run.get("sharding.strategy")) == ("fsdp", "FULL_SHARD")
    assert (run.get("precision.weights"), run.get("precision.compute")) == ("float32", "bfloat16")
    old = draft(text, transformers="4.40.0", accelerate="0.29.0")
    assert old.get("precision.weights") == "bfloat16"


def test_fsdp_config_of_the_trainer_has_bare_names():
    text = BASE + "fsdp: [full_shard, auto_wrap]\nfsdp_config:\n  version: 2\n  activation_checkpointing: true\n"
    run = draft(text, **FIVE)
    assert (run.get("sharding.kind"), run.get("checkpointing.kind")) == ("fsdp2", "full")


def test_the_optimizer_default_follows_transformers_and_torch():
    assert draft(BASE, transformers="4.57.0", torch="2.8.0").get("optimizer.name") == "adamw_torch_fused"
    assert draft(BASE, transformers="4.57.0", torch="2.6.0").get("optimizer.name") == "adamw_torch"
    assert draft(BASE, transformers="4.31.0").get("optimizer.name") == "adamw_hf"


def test_loops_of_their_own_get_no_trainer_defaults():
    run = draft(BASE + "with_tracking: true\nlearning_rate: 1e-4\n")
    assert not run.has("precision.weights")
    assert run.get("batch.micro") == 4


def test_a_script_switch_that_is_off_silences_its_adapter_keys():
    text = BASE + "learning_rate: 1e-4\nlora_rank: 8\nuse_lora: "
    assert draft(text + "false\n", **FOUR).get("method") == "full"
    assert draft(text + "true\n", **FOUR).get("method") == "lora"


@pytest.mark.parametrize("odd", ["[1, 2]", "{a: b}", "null", "'many'"])
def test_odd_types_are_left_out(odd):
    names = ("per_device_train_batch_size", "learning_rate", "bf16", "deepspeed", "fsdp", "fsdp_config", "max_steps")
    names += ("dataset_mixer", "dataset_mixture", "gradient_checkpointing_kwargs", "torch_dtype", "optim")
    for name in names:
        draft(f"model_name_or_path: m\noutput_dir: o\nseed: 1\nnum_train_epochs: 1\ntf32: true\n{name}: {odd}\n")
