"""Unsloth's calls in a script, with what they do where they are silent."""

from __future__ import annotations

from .drafting import draft

LOAD = 'from unsloth import FastLanguageModel\nmodel, tok = FastLanguageModel.from_pretrained("org/model"{load})\n'
PEFT = "model = FastLanguageModel.get_peft_model(model{peft})\n"
TRAIN = 'SFTTrainer(model=model, args=SFTConfig(output_dir="o", per_device_train_batch_size=2)).train()\n'


def script(load: str = "", peft: str | None = "") -> str:
    text = LOAD.replace("{load}", load)
    return text + ("" if peft is None else PEFT.replace("{peft}", peft)) + TRAIN


def test_a_silent_script_is_qlora() -> None:
    made = draft(script(), file="train.py")
    wanted = {
        "method": "qlora",
        "quantization.bits": 4,
        "quantization.type": "nf4",
        "quantization.double": True,
        "adapter.rank": 16,
        "adapter.alpha": 16.0,
        "adapter.dtype": "float32",
        "length.max": 2048,
        "checkpointing.kind": "full",
        "activation_offload": True,
        "loss": "unsloth",
        "kernels": "unsloth",
        "precision.weights": "bfloat16",
        "precision.bf16": True,
    }
    assert {path: made.get(path) for path in wanted} == wanted
    targets = made.get("adapter.targets")
    assert isinstance(targets, tuple)
    assert len(targets) == 7


def test_plain_checkpoints_stay_on_the_device() -> None:
    made = draft(script(peft=", use_gradient_checkpointing=True, r=8"), file="train.py")
    assert (made.get("activation_offload"), made.get("adapter.rank")) == (False, 8)


def test_full_fine_tuning() -> None:
    made = draft(script(", full_finetuning=True", None), file="train.py")
    assert (made.get("method"), made.get("quantization.bits")) == ("full", None)


def test_sixteen_bit_lora() -> None:
    made = draft(script(", load_in_4bit=False, max_seq_length=4096"), file="train.py")
    assert (made.get("method"), made.get("quantization.bits"), made.get("length.max")) == ("lora", None, 4096)


def test_a_length_that_only_a_run_decides_stays_open() -> None:
    assert draft(script(", max_seq_length=args.length"), file="train.py").get("length.max") is None
