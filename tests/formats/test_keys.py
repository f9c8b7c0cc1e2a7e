import pytest

from trainlint.formats.keys import unknown_keys
from trainlint.formats.slips import Slips, one_slip
from trainlint.run import Value

from .drafting import fragment

TRL = "model_name_or_path: m\noutput_dir: o\nlearning_rate: 1.0e-5\nseed: 1\ndataset_text_field: t\n"


def found(text, file="train.yaml", **versions):
    known = {name: Value(version) for name, version in versions.items()}
    return [
        (one.dotted, one.kind, one.suggestion, one.consequence) for one in unknown_keys(fragment(text, file), known)
    ]


def test_a_slip_in_a_trainer_argument():
    text = TRL + "gradient_acumulation_steps: 4\n"
    assert found(text) == [("gradient_acumulation_steps", "misspelt", "gradient_accumulation_steps", "open")]


def test_arguments_of_a_script_are_its_own():
    assert found(TRL + "my_argument: 1\nsystem_prompt: hi\ndataset_configs: [a]\n") == []


def test_what_only_some_releases_have_is_silent_without_a_version():
    text = TRL + "evaluation_strategy: steps\nmax_seq_length: 512\nuse_liger_kernel: true\n"
    assert found(text) == []
    assert [one[:3] for one in found(text, trl="1.0.0", transformers="5.0.0")] == [
        ("evaluation_strategy", "removed", "eval_strategy"),
        ("max_seq_length", "removed", "max_length"),
    ]
    assert [one[:2] for one in found(text, trl="0.9.6", transformers="4.40.0")] == [("use_liger_kernel", "later")]


def test_accelerate_refuses_at_the_top_and_copies_below():
    text = "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_processes: 2\n"
    text += "num_gpus: 2\nfsdp_config:\n  mine: 1\n"
    assert found(text, "acc.yaml") == [("num_gpus", "never", "", "refused")]


def test_deepspeed_ignores_at_the_top_and_refuses_in_zero():
    text = '{"zero_optimization": {"stage": 2, "stage2_gather": true}, "my_section": {}}'
    assert found(text, "ds.json") == [
        ("zero_optimization.stage2_gather", "never", "", "refused"),
        ("my_section", "never", "", "ignored"),
    ]


@pytest.mark.parametrize(("right", "wrong"), [("learning_rate", "learing_rate"), ("save_steps", "save_stesp")])
def test_one_slip(right, wrong):
    assert one_slip(right, wrong)
    assert Slips([right, "weight_decay"]).meant(wrong) == right


@pytest.mark.parametrize("other", ["tp_size", "model", "eval_steps"])
def test_names_of_their_own_are_no_slips(other):
    assert Slips(["cp_size", "mode", "save_steps", "eval_steps"]).meant(other) is None
