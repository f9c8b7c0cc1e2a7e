"""Values of the wrong type: what loaders forgive, what they do not, and what the question costs."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import files

import pytest
import yaml
from jsonschema import Draft202012Validator

from trainlint.formats.validity import LOADERS, faults

from .drafting import fragment

TRL = {
    "model_name_or_path": "Qwen/Qwen2.5-0.5B",
    "dataset_name": "trl-lib/Capybara",
    "output_dir": "out",
    "learning_rate": 2.0e-5,
    "num_train_epochs": 1,
    "per_device_train_batch_size": 2,
    "packing": True,
}
LLAMAFACTORY = {
    "model_name_or_path": "Qwen/Qwen2.5-0.5B",
    "stage": "sft",
    "finetuning_type": "lora",
    "dataset": "identity",
    "template": "qwen",
    "output_dir": "out",
}
AXOLOTL = {
    "base_model": "Qwen/Qwen2.5-0.5B",
    "adapter": "lora",
    "lora_r": 16,
    "micro_batch_size": 1,
    "num_epochs": 1,
    "sequence_len": 2048,
    "datasets": [{"path": "a/b", "type": "alpaca"}],
}
ACCELERATE = {
    "compute_environment": "LOCAL_MACHINE",
    "distributed_type": "MULTI_GPU",
    "mixed_precision": "bf16",
    "num_machines": 1,
    "num_processes": 8,
}
DEEPSPEED = {"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": True}, "zero_optimization": {"stage": 2}}
LITGPT = {
    "checkpoint_dir": "checkpoints/a/b",
    "out_dir": "out",
    "precision": "bf16-true",
    "lora_r": 8,
    "train": {"global_batch_size": 16, "micro_batch_size": 1, "epochs": 1},
    "eval": {"interval": 100},
}
BASES: dict[str, dict[str, object]] = {
    "trl": TRL,
    "llamafactory": LLAMAFACTORY,
    "axolotl": AXOLOTL,
    "accelerate": ACCELERATE,
    "deepspeed": DEEPSPEED,
    "litgpt": LITGPT,
}


def said(name: str, **changes: object) -> list[tuple[str, str, bool]]:
    """The faults of a config with some keys changed; `a__b` is `a.b`."""
    config = json.loads(json.dumps(BASES[name]))
    for key, value in changes.items():
        *above, last = key.split("__")
        block = config
        for part in above:
            block = block.setdefault(part, {})
        block[last] = value
    json_like = name == "deepspeed"
    text = json.dumps(config) if json_like else yaml.safe_dump(config, sort_keys=False)
    made = fragment(text, "ds.json" if json_like else "train.yaml")
    assert made.format == name
    return [(fault.dotted, fault.wanted, fault.refused) for fault in faults(made)]


@pytest.mark.parametrize("name", BASES)
def test_good_configs_have_no_faults(name: str) -> None:
    assert said(name) == []


WRONG: list[tuple[str, str, object, str, bool]] = [
    ("trl", "per_device_train_batch_size", "four", "a whole number", True),
    ("trl", "per_device_train_batch_size", "auto", "a whole number", True),
    ("trl", "bf16", "maybe", "true or false", False),
    ("trl", "lora_r", [8], "a whole number", False),
    ("trl", "learning_rate", "2e-5x", "a number", True),
    ("trl", "learning_rate", {"start": 1}, "a number", False),
    ("trl", "eval_strategy", "step", "one of no, steps, epoch", True),
    ("trl", "save_total_limit", True, "a whole number", False),
    ("trl", "output_dir", ["a"], "a text", False),
    ("trl", "deepspeed", {"zero_optimization": {"stage": 4}}, "one of 0, 1, 2, 3", True),
    ("llamafactory", "stage", "SFT", "one of pt, sft, rm, ppo, dpo, kto", True),
    ("llamafactory", "cutoff_len", 0.5, "a whole number", False),
    ("llamafactory", "max_grad_norm", "None", "a number", True),
    ("axolotl", "micro_batch_size", 0.5, "a whole number", True),
    ("axolotl", "lora_modules_to_save", "embed_tokens", "a list", True),
    ("axolotl", "load_in_8bit", "maybe", "true or false", True),
    ("axolotl", "lora_r", True, "a whole number", False),
    ("accelerate", "distributed_type", "multi_gpu", "", True),
    ("accelerate", "mixed_precision", "float16", "one of no, fp16, bf16, fp8", True),
    ("accelerate", "num_processes", "all", "a whole number", True),
    ("accelerate", "deepspeed_config", {"gradient_clipping": "off"}, "a number, `auto` or `none`", True),
    ("deepspeed", "zero_optimization__stage", 5, "one of 0, 1, 2, 3", True),
    ("deepspeed", "zero_optimization__overlap_comm", "perhaps", "true, false or `auto`", True),
    ("deepspeed", "zero_optimization__offload_optimizer", {"device": "CPU"}, "one of none, cpu, nvme", True),
    ("deepspeed", "train_batch_size", "many", "a whole number or `auto`", True),
    ("deepspeed", "bf16", True, "a mapping", True),
    ("deepspeed", "gradient_clipping", [1.0], "a number or `auto`", False),
    ("litgpt", "lora_dropout", "some", "a number", True),
    ("litgpt", "train__micro_batch_size", "big", "a whole number", True),
]


@pytest.mark.parametrize(("name", "key", "value", "wanted", "refused"), WRONG)
def test_values_that_no_loader_makes_fit(name: str, key: str, value: object, wanted: str, refused: bool) -> None:
    ((_, given, stops),) = said(name, **{key: value})
    assert given == wanted or (not wanted and given.startswith("one of NO, MULTI_CPU"))
    assert stops is refused


FORGIVEN: list[tuple[str, str, object]] = [
    *(("trl", "per_device_train_batch_size", value) for value in (None, "4", 4.0, "${batch}", "{{ batch }}", "???")),
    *(("trl", "learning_rate", value) for value in ("1e-5", 1, "<your rate>", "LEARNING_RATE", "inf", "")),
    *(("trl", "bf16", value) for value in (1, 0, "True", "no", "off", None)),
    ("trl", "save_total_limit", False),
    ("trl", "lora_target_modules", "all-linear"),
    ("trl", "my_own_argument", ["anything"]),
    ("trl", "beta", [0.1, 0.2]),
    ("llamafactory", "dataset", ["a", "b"]),
    ("axolotl", "bf16", "auto"),
    ("axolotl", "learning_rate", "2e-4"),
    ("accelerate", "distributed_type", "DATA_PARALLEL"),
    ("accelerate", "mixed_precision", False),
    ("accelerate", "mixed_precision", "BF16"),
    ("accelerate", "downcast_bf16", "no"),
    ("accelerate", "fsdp_config", {"fsdp_sharding_strategy": "full_shard", "fsdp_offload_params": "false"}),
    ("deepspeed", "zero_optimization__reduce_bucket_size", 2e8),
    ("deepspeed", "zero_optimization__sub_group_size", "1e9"),
    ("deepspeed", "zero_optimization", True),
    ("deepspeed", "train_batch_size", "auto"),
    ("deepspeed", "fp16", {"initial_scale_power": 16.5, "loss_scale": 0}),
    ("litgpt", "optimizer", "AdamW"),
]


@pytest.mark.parametrize(("name", "key", "value"), FORGIVEN)
def test_values_that_loaders_make_fit(name: str, key: str, value: object) -> None:
    assert said(name, **{key: value}) == []


def test_faults_stand_in_the_order_of_the_file() -> None:
    found = said("trl", num_train_epochs="three", learning_rate="low")
    assert [dotted for dotted, *_ in found] == ["learning_rate", "num_train_epochs"]


def test_jsonschema_is_imported_for_faulty_values_only() -> None:
    program = (
        "import json, sys; from trainlint.documents import from_text; from trainlint.formats.registry import *;"
        "from trainlint.formats.validity import faults\n"
        "for text in json.loads(sys.argv[1]):\n"
        "    document = from_text('ds.json', text, 'json')\n"
        "    (_, made), = recognise(document, built_in('json'))\n"
        "    print(len(faults(made)), 'jsonschema' in sys.modules)"
    )
    texts = [json.dumps(DEEPSPEED), json.dumps({**DEEPSPEED, "train_batch_size": "8"})]
    texts.append(json.dumps({**DEEPSPEED, "train_batch_size": "many"}))
    command = [sys.executable, "-c", program, json.dumps(texts)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:3] == ["0 False", "0 False", "1 True"]


@pytest.mark.parametrize("name", sorted({loader.schema for loaders in LOADERS.values() for loader in loaders}))
def test_schemas_are_schemas(name: str) -> None:
    text = files("trainlint_schemas").joinpath("formats", f"{name}.schema.json").read_text("utf-8")
    Draft202012Validator.check_schema(json.loads(text))
