"""Scripts that train: what their calls say, what only a run decides, and the order of mixed-precision calls."""

import pytest

from trainlint.formats import Draft, Fragment
from trainlint.formats.scripts.amp import Amp, Event

from .drafting import draft, fragment, fragments, options

HEAD = """import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, Trainer, TrainingArguments
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer
"""
LOAD = 'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")\n'


def read(text: str) -> Fragment:
    return fragment(text, "train.py")


def run(text: str, **versions: str) -> Draft:
    return draft(text, file="train.py", known=None, **versions)


def amp(text: str) -> Amp:
    found = read(text).facts["amp"]
    assert isinstance(found, Amp)
    return found


def kinds(events: tuple[Event, ...]) -> list[str]:
    return [event.kind for event in events]


@pytest.mark.parametrize(
    "text",
    [
        "from transformers import TrainingArguments\nprint(TrainingArguments.__doc__)\n",
        "class Trainer:\n    def __init__(self): ...\nTrainer()\n",
        'from transformers import AutoModel\nmodel = AutoModel.from_pretrained("a/b", torch_dtype="auto")\n',
        "with torch.autocast('cuda'):\n    model(x)\n",
        '"""Call TrainingArguments(bf16=True) yourself."""\n',
        "from dataclasses import dataclass\n\n@dataclass\nclass Args:\n    training: TrainingArguments\n",
        "state.backward(); cursor.forward()\n",
    ],
)
def test_what_trains_nothing_is_left_alone(text: str) -> None:
    assert fragments(text, "tool.py") == []


def test_keywords_are_values_at_their_place() -> None:
    found = read(
        f'{HEAD}{LOAD}args = TrainingArguments("out", bf16=True,\n    learning_rate=2e-5)\nTrainer(model, args=args)'
    )
    assert found.format == "python-script"
    assert found.launches
    assert found.section == "TrainingArguments"
    rate = found.values["optimizer.lr"]
    assert (rate.value, rate.key, rate.raw, rate.file_format) == (2e-5, "learning_rate", "2e-5", "python-script")
    assert rate.place is not None
    assert rate.place[1:] == (7, 19, 7, 23)
    assert found.values["precision.bf16"].raw == "True"
    assert found.values["model.id"].value == "Qwen/Qwen2.5-7B"
    assert [(one.role, one.text) for one in found.references] == [("model", "Qwen/Qwen2.5-7B")]
    assert found.entry("bf16") is not None


def test_columns_count_characters() -> None:
    found = read(f'{HEAD}TrainingArguments(run_name="größer", max_steps=5)\n')
    place = found.values["schedule.max_steps"].place
    assert place is not None
    assert place[1:] == (5, 48, 5, 49)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("4", 4),
        ("SIZE", 8),
        ("2 * SIZE", 16),
        ("2 ** 3", 8),
        ("16 // 4", 4),
        ("cli.size", None),
        ("int(4)", None),
        ("TWICE", None),
        ("2 if big else 4", None),
    ],
)
def test_literals_and_names_bound_once_are_known(argument: str, value: int | None) -> None:
    text = f"{HEAD}SIZE = 8\nTWICE = 1\nTWICE = 2\nTrainingArguments(per_device_train_batch_size={argument})\n"
    made = run(text)
    assert made.get("batch.micro") == value
    assert "batch.micro" not in made.possible


def test_a_literal_dict_is_unpacked_and_an_unknown_one_leaves_all_open() -> None:
    known = run(f"{HEAD}{LOAD}shared = dict(bf16=True)\nTrainer(model, args=TrainingArguments(**shared))\n")
    assert known.get("precision.bf16") is True
    assert known.get("batch.micro") == 8
    unknown = run(f"{HEAD}{LOAD}Trainer(model, args=TrainingArguments(bf16=True, **load()))\n")
    assert unknown.get("precision.bf16") is True
    assert unknown.get("batch.micro") is None


def test_flags_that_only_a_run_decides_stay_possible() -> None:
    made = run(f"{HEAD}{LOAD}Trainer(model, args=TrainingArguments(bf16=torch.cuda.is_bf16_supported()))\n")
    assert options(made, "precision.bf16") == {True, False}
    assert made.get("precision.compute") is None


@pytest.mark.parametrize(
    ("argument", "weights"),
    [
        ("torch_dtype=torch.float16", "float16"),
        ("dtype=torch.bfloat16", "bfloat16"),
        ('torch_dtype="float32"', "float32"),
        ("torch_dtype=args.dtype", None),
    ],
)
def test_the_dtype_of_the_load_is_that_of_the_weights(argument: str, weights: str | None) -> None:
    load = f'model = AutoModelForCausalLM.from_pretrained("a/b", {argument})\n'
    made = run(f'{HEAD}{load}Trainer(model, args=TrainingArguments("o"))\n')
    assert made.get("precision.weights") == weights
    assert "precision.weights" not in made.possible


def test_without_a_dtype_the_release_decides() -> None:
    text = f'{HEAD}{LOAD}Trainer(model, args=TrainingArguments("o"))\n'
    assert run(text, transformers="4.50.0").get("precision.weights") == "float32"
    assert run(text, transformers="5.1.0").get("precision.weights") is None


def test_quantization_comes_from_the_config_that_the_load_is_given() -> None:
    text = """half = torch.bfloat16
bnb = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=half)
other = BitsAndBytesConfig(load_in_8bit=True)
model = AutoModelForCausalLM.from_pretrained("a/b", quantization_config=bnb)
model = prepare_model_for_kbit_training(model)
model = get_peft_model(model, LoraConfig(r=16, target_modules=["q_proj", "v_proj"]))
Trainer(model=model, args=TrainingArguments("out")).train()
"""
    made = run(HEAD + text)
    assert made.get("quantization.bits") == 4
    assert made.get("quantization.type") == "nf4"
    assert made.get("quantization.compute") == "bfloat16"
    assert made.get("quantization.double") is False
    assert made.get("quantization.prepared") is True
    assert made.get("method") == "qlora"
    assert made.get("adapter.rank") == 16
    assert made.get("adapter.targets") == ("q_proj", "v_proj")
    assert made.get("adapter.alpha") == 8


def test_an_adapter_under_a_condition_leaves_the_method_open() -> None:
    text = f"""{LOAD}if use_lora:
    model = get_peft_model(model, LoraConfig(r=16))
Trainer(model=model, args=TrainingArguments("out")).train()
"""
    made = run(HEAD + text)
    assert options(made, "method") == {"full", "lora"}
    assert made.get("adapter.rank") is None


def test_a_main_guard_is_no_condition() -> None:
    text = f"""{LOAD}if __name__ == "__main__":
    model = get_peft_model(model, LoraConfig(r=16))
    Trainer(model=model, args=TrainingArguments("out")).train()
"""
    assert run(HEAD + text).get("method") == "lora"


@pytest.mark.parametrize(
    ("argument", "kind"),
    [('"auto"', "device-map"), ('{"": 0}', "none"), ('"cuda:0"', "none"), ('{"a": 0, "b": 1}', "device-map")],
)
def test_a_device_map_spreads_layers_or_not(argument: str, kind: str) -> None:
    text = f'model = AutoModelForCausalLM.from_pretrained("a/b", device_map={argument})\n'
    assert run(f'{HEAD}{text}Trainer(model=model, args=TrainingArguments("out"))\n').get("sharding.kind") == kind


def test_trl_configs_bring_objective_and_section() -> None:
    found = read(f'{HEAD}SFTTrainer(model="a/b", args=SFTConfig("out", max_length=2048), train_dataset=data).train()\n')
    assert found.framework == "trl"
    assert found.section == "SFTConfig"
    assert found.values["length.max"].value == 2048
    assert found.values["model.id"].value == "a/b"
    made = run(f'{HEAD}{LOAD}DPOTrainer(model, args=DPOConfig("out", beta=0.1), peft_config=LoraConfig())\n')
    assert made.get("objective") == "dpo"
    assert made.get("method") == "lora"
    assert made.get("reference") == "adapter-off"


def test_of_several_models_the_trained_one_counts() -> None:
    text = """ref = AutoModelForCausalLM.from_pretrained("a/reference", torch_dtype=torch.float16)
policy = AutoModelForCausalLM.from_pretrained("a/policy", torch_dtype=torch.bfloat16)
DPOTrainer(model=policy, ref_model=ref, args=DPOConfig("out")).train()
"""
    made = run(HEAD + text)
    assert made.get("model.id") == "a/policy"
    assert made.get("precision.weights") == "bfloat16"


def test_calls_that_disagree_say_nothing() -> None:
    text = """if quantize:
    model = AutoModelForCausalLM.from_pretrained("a/b", load_in_4bit=True, torch_dtype=torch.float16)
else:
    model = AutoModelForCausalLM.from_pretrained("a/b", torch_dtype=torch.float16)
Trainer(model=model, args=TrainingArguments("out")).train()
"""
    made = run(HEAD + text)
    assert made.get("model.id") == "a/b"
    assert made.get("precision.weights") == "float16"
    assert made.get("quantization.bits") is None
    assert made.get("method") == "full"


def test_unsloth_quantizes_and_checkpoints_by_default() -> None:
    text = """from unsloth import FastLanguageModel
from trl import SFTConfig, SFTTrainer
model, tokenizer = FastLanguageModel.from_pretrained(model_name="unsloth/Qwen3-8B", max_seq_length=4096)
model = FastLanguageModel.get_peft_model(model, r=32, use_gradient_checkpointing="unsloth")
SFTTrainer(model=model, args=SFTConfig(output_dir="out")).train()
"""
    made = run(text)
    assert made.get("method") == "qlora"
    assert made.get("quantization.type") == "nf4"
    assert made.get("adapter.rank") == 32
    assert made.get("checkpointing.kind") == "full"
    assert made.get("kernels") == "unsloth"


def test_arguments_from_the_command_line_bring_no_defaults() -> None:
    text = f"""{HEAD}from transformers import HfArgumentParser
args, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
{LOAD}Trainer(model=model, args=args).train()
"""
    made = run(text)
    assert made.get("framework") == "transformers"
    assert made.get("batch.micro") is None


LOOP = """import torch
def fit(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    for x in loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x).mean()
        scaler.scale(loss / 4).backward()
        {unscale}
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
"""


def test_calls_along_a_loop_stand_in_order() -> None:
    (scope,) = amp(LOOP.format(unscale="pass")).scopes
    assert scope.name == "fit"
    assert kinds(scope.loops[0].events) == [
        "autocast", "scaled-backward", "clip", "scaler-step", "scaler-update", "zero-grad"
    ]  # fmt: skip
    scaler, autocast, backward = scope.events[:3]
    assert (scaler.kind, scaler.owner, scaler.device, scaler.enabled) == ("scaler", "scaler", "cuda", True)
    assert (autocast.dtype, autocast.device, autocast.enabled) == ("bfloat16", "cuda", True)
    assert (backward.owner, backward.subject, backward.divided) == ("scaler", "loss / 4", True)
    assert backward.place[1:] == (7, 9, 7, 42)


@pytest.mark.parametrize(
    ("unscale", "conditional"),
    [("scaler.unscale_(opt)", False), ("if clip: scaler.unscale_(opt)", True)],
)
def test_unscaling_is_seen_in_branches(unscale: str, conditional: bool) -> None:
    (event,) = amp(LOOP.format(unscale=unscale)).of("unscale")
    assert (event.subject, event.conditional) == ("opt", conditional)
    assert event.condition == ("clip" if conditional else "")


def test_own_functions_are_followed_where_they_are_called() -> None:
    text = """import torch
def clip(scaler, opt, model):
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)

for x in loader:
    scaler.scale(model(x)).backward()
    clip(scaler, optimizer, model)
    scaler.step(optimizer)
"""
    scope = amp(text).scopes[0]
    assert scope.name == ""
    assert kinds(scope.loops[0].events) == ["scaled-backward", "unscale", "clip", "scaler-step"]
    assert [event.via for event in scope.events] == ["", "clip", "clip", ""]


@pytest.mark.parametrize(
    ("built", "enabled", "conditional"),
    [
        ("torch.cuda.amp.GradScaler()", True, False),
        ("torch.cuda.amp.GradScaler(enabled=False)", False, False),
        ("torch.cuda.amp.GradScaler(enabled=use_amp)", None, False),
        ("torch.cuda.amp.GradScaler(**options)", None, False),
        ("torch.cuda.amp.GradScaler() if half else None", True, True),
    ],
)
def test_a_scaler_is_on_off_or_open(built: str, enabled: bool | None, conditional: bool) -> None:
    (event,) = amp(f"import torch\nscaler = {built}\nscaler.scale(loss).backward()\n").of("scaler")
    assert (event.enabled, event.conditional, event.owner) == (enabled, conditional, "scaler")


@pytest.mark.parametrize(
    ("entered", "dtype", "device"),
    [
        ("torch.autocast('cuda')", "float16", "cuda"),
        ("torch.autocast('cpu')", "bfloat16", "cpu"),
        ("torch.autocast(device_type=kind)", None, None),
        ("torch.cuda.amp.autocast()", "float16", "cuda"),
        ("torch.cuda.amp.autocast(True, torch.bfloat16)", "bfloat16", "cuda"),
        ("torch.autocast('cuda', dtype=half)", None, "cuda"),
        ("accelerator.autocast()", None, None),
        ("context", "bfloat16", "cuda"),
    ],
)
def test_autocast_has_a_dtype_or_none(entered: str, dtype: str | None, device: str | None) -> None:
    text = f"""import torch
context = torch.autocast("cuda", dtype=torch.bfloat16)
def step(optimizer):
    with {entered}:
        loss = model(x)
        loss.backward()
    optimizer.step()
"""
    scope = next(scope for scope in amp(text).scopes if scope.name == "step")
    assert (scope.events[0].dtype, scope.events[0].device) == (dtype, device)
    assert scope.events[1].kind == "backward"
    assert scope.events[1].inside == ("autocast",)


def test_what_follows_an_early_continue_is_conditional() -> None:
    text = """for i, x in enumerate(loader):
    optimizer.zero_grad()
    model(x).backward()
    if (i + 1) % 4:
        continue
    optimizer.step()
"""
    (loop,) = amp(text).scopes[0].loops
    assert [(event.kind, event.conditional) for event in loop.events] == [
        ("zero-grad", False), ("backward", False), ("step", True)
    ]  # fmt: skip
    assert loop.over == "enumerate(loader)"


def test_accelerate_clips_and_accumulates_by_itself() -> None:
    text = """from accelerate import Accelerator
accelerator = Accelerator(mixed_precision="fp16", gradient_accumulation_steps=4)
for batch in loader:
    with accelerator.accumulate(model):
        accelerator.backward(model(batch))
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
"""
    found = read(text)
    assert found.framework == "accelerate"
    assert found.values["precision.mixed"].value == "fp16"
    assert found.values["batch.accumulation"].value == 4
    events = amp(text).scopes[0].events
    assert kinds(events) == ["accelerator-backward", "clip", "step", "zero-grad"]
    assert events[1].owner == "accelerator"
    assert all(event.inside == ("accumulate",) for event in events)


def test_a_method_knows_its_class() -> None:
    text = """import lightning as L
class Net(L.LightningModule):
    def training_step(self, batch, i):
        loss = self.net(batch)
        self.manual_backward(loss)
        self.optimizer.step()
"""
    scope = amp(text + "L.Trainer(precision='bf16-mixed').fit(Net())\n").scopes[0]
    assert (scope.name, scope.bases) == ("Net.training_step", ("L.LightningModule",))


def test_a_plain_loop_knows_its_optimizer_and_autocast() -> None:
    text = f"""{HEAD}{LOAD}
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
for x in loader:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(x).loss
    loss.backward()
    optimizer.step()
"""
    made = run(text, transformers="4.50.0")
    assert made.get("framework") == "torch"
    assert made.get("optimizer.name") == "adamw_torch_fused"
    assert made.get("optimizer.lr") == 1e-4
    assert made.get("precision.compute") == "bfloat16"
    assert made.get("precision.weights") == "float32"
    assert made.get("precision.grad_scaler") is False
    assert made.get("batch.micro") is None


def test_calls_and_assignments_are_kept_for_rules() -> None:
    found = read(
        f"{HEAD}{LOAD}model.config.use_cache = True\nmodel.gradient_checkpointing_enable()\nTrainer(model, args=x)\n"
    )
    calls, assignments = found.facts["calls"], found.facts["assignments"]
    assert isinstance(calls, tuple)
    assert isinstance(assignments, tuple)
    assert "model.gradient_checkpointing_enable" in [call.name for call in calls]
    assert [(one.target, one.source) for one in assignments] == [("model.config.use_cache", "True")]
    assert found.values["checkpointing.kind"].value == "full"


def test_inference_with_a_quantized_model_starts_no_run() -> None:
    text = """bnb = BitsAndBytesConfig(load_in_4bit=True)
model = AutoModelForCausalLM.from_pretrained("a/b", quantization_config=bnb)
"""
    assert read(HEAD + text).launches
    assert not read(f"{HEAD}{text}model.generate(x)\n").launches
