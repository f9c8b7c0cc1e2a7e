from .drafting import draft, fragment, options

BASE = """\
model_name_or_path: org/model
dataset_name: org/data
output_dir: out
per_device_train_batch_size: 2
learning_rate: 2.0e-4
"""
SFT = BASE + "dataset_text_field: text\n"
DPO = BASE + "beta: 0.1\nprecompute_ref_log_probs: false\n"
OLD = {"trl": "0.15.2", "transformers": "4.46.0", "peft": "0.13.0"}
NEW = {"trl": "1.16.0", "transformers": "5.24.0", "peft": "0.21.0"}


def test_the_objective_is_told_by_arguments_that_only_it_has():
    assert (fragment(SFT).section, fragment(DPO).section) == ("SFTConfig", "DPOConfig")
    assert fragment(BASE + "num_generations: 8\nbeta: 0.0\n").section == "GRPOConfig"
    assert fragment(BASE + "desirable_weight: 1.0\nbeta: 0.1\n").section == "KTOConfig"
    assert fragment(BASE + "loss_type: simpo\nbeta: 2.0\n").section == "CPOConfig"


def test_what_several_objectives_have_tells_none():
    run = draft(BASE + "beta: 0.1\nmax_prompt_length: 512\n", **OLD)
    assert options(run, "objective") >= {"dpo", "orpo"}


def test_defaults_of_an_old_release():
    run = draft(SFT, **OLD)
    assert (run.get("precision.bf16"), run.get("checkpointing.kind")) == (False, "none")
    assert (run.get("precision.weights"), run.get("length.max"), run.get("loss")) == ("float32", 1024, "shifted")


def test_defaults_of_a_new_release():
    run = draft(SFT, **NEW)
    assert (run.get("precision.bf16"), run.get("precision.autocast")) == (True, True)
    assert (run.get("precision.weights"), run.get("precision.compute")) == ("float32", "bfloat16")
    assert (run.get("checkpointing.kind"), run.get("checkpointing.reentrant")) == ("full", False)
    assert run.get("loss") == "trl-fused"


def test_an_unknown_release_leaves_bf16_and_what_follows_open():
    run = draft(SFT)
    assert options(run, "precision.compute") == {"float32", "bfloat16"}
    notes = {value.note for value in run.possible["precision.compute"]}
    assert notes == {value.note for value in run.possible["precision.bf16"]}


def test_lora_defaults():
    run = draft(SFT + "use_peft: true\nfp16: true\n", known={"model.type": "llama"}, **OLD)
    assert (run.get("method"), run.get("adapter.rank"), run.get("adapter.alpha")) == ("lora", 16, 32.0)
    assert (run.get("adapter.targets"), run.get("adapter.dtype")) == (("q_proj", "v_proj"), "float32")


def test_adapter_keys_without_use_peft_are_open():
    assert options(draft(SFT + "lora_r: 8\n", **OLD), "method") == {"full", "lora"}
    assert draft(SFT + "lora_r: 8\nuse_peft: false\n", **OLD).get("method") == "full"


def test_qlora_follows_the_release():
    text = SFT + "use_peft: true\nload_in_4bit: true\nbf16: true\ntorch_dtype: bfloat16\n"
    old, new = draft(text, **OLD), draft(text, **NEW)
    assert (old.get("method"), old.get("quantization.type"), old.get("quantization.double")) == ("qlora", "nf4", False)
    assert (old.get("adapter.dtype"), new.get("adapter.dtype")) == ("float32", "bfloat16")
    assert new.get("quantization.prepared") is False


def test_a_reference_is_a_copy_unless_an_adapter_can_be_switched_off():
    assert draft(DPO, **OLD).get("reference") == "copy"
    assert draft(DPO + "use_peft: true\n", **OLD).get("reference") == "adapter-off"
    precomputed = DPO.replace("false", "true")
    assert draft(precomputed, **OLD).get("reference") == "precomputed"
    assert draft(precomputed, **{**OLD, "trl": "1.0.0"}).get("reference") == "copy"
    assert draft(SFT, **OLD).get("reference") == "none"


def test_grpo_has_a_reference_only_with_a_penalty():
    text = BASE + "num_generations: 8\nmax_prompt_length: 512\nmax_completion_length: 1024\n"
    assert draft(text, **OLD).get("reference") == "copy"
    assert draft(text, **NEW).get("reference") == "none"
    assert draft(text + "beta: 0.04\n", **NEW).get("reference") == "copy"
    assert not draft(text, **NEW).has("length.max")


def test_packing_fills_rows_without_padding():
    packed = draft(SFT + "packing: true\n", **NEW)
    assert (packed.get("length.padded"), packed.get("length.padding_free")) == (False, True)
    assert draft(SFT, **NEW).get("length.padded") is True


def test_no_length_is_no_default():
    assert not draft(SFT + "max_length: null\n", **NEW).has("length.max")


def test_liger_fuses_the_loss():
    assert draft(SFT + "use_liger_kernel: true\n", **NEW).get("loss") == "liger"


def test_data_sets_of_a_mixture_are_references():
    text = BASE + "dataset_mixture:\n  datasets:\n    - id: org/one\n    - id: org/two\n"
    text = text.replace("dataset_name: org/data\n", "")
    found = fragment(text)
    assert found.values["data.names"].value == ("org/one", "org/two")
    assert [one.text for one in found.references if one.role == "dataset"] == ["org/one", "org/two"]


def test_a_script_that_trains_a_part_is_no_full_fine_tune():
    assert draft(SFT + "spectrum_config_path: layers.yaml\n", **NEW).get("method") == "freeze"


def test_trl_asks_for_a_release_of_transformers():
    run = draft(SFT + "fsdp: full_shard\n", trl="1.16.0")
    assert run.versions["transformers"].value == ">=4.56.2"
    assert options(run, "optimizer.name") == {"adamw_torch", "adamw_torch_fused"}
    assert draft(SFT, trl="1.16.0", torch="2.9.0").get("optimizer.name") == "adamw_torch_fused"
