"""A number in the DeepSpeed config differs from the trainer's: the Hugging Face integration refuses to start."""

from collections.abc import Iterator

from trainlint.api import Entry, Found, Fragment, RunView, Scalar, Value, rule, set_value, written

PAIRS = {
    "train_micro_batch_size_per_gpu": "batch.micro",
    "gradient_accumulation_steps": "batch.accumulation",
    "gradient_clipping": "clip",
    "optimizer.params.lr": "optimizer.lr",
    "optimizer.params.eps": "optimizer.epsilon",
    "optimizer.params.weight_decay": "optimizer.weight_decay",
    "scheduler.params.warmup_max_lr": "optimizer.lr",
    "scheduler.params.warmup_num_steps": "schedule.warmup_steps",
    "fp16.enabled": "precision.fp16",
    "bf16.enabled": "precision.bf16",
}
"""What `HfTrainerDeepSpeedConfig` compares (transformers integrations/deepspeed.py)."""
BATCH = "train_batch_size"
OWN = ("deepspeed", "accelerate", "peft-adapter", "model-config", "dataset-info")
TRAINERS = ("hf-trainer", "trl", "llamafactory", "axolotl", "ms-swift")
SIGN = "per_device_train_batch_size"
"""Command lines and scripts that name this key fill `TrainingArguments`."""


@rule(severity="error")
def check(view: RunView) -> Iterator[Found]:
    sides = [fragment for fragment in view.fragments if fragment.format not in OWN]
    if not any(_trains(fragment) for fragment in sides):
        return
    trainer = {path: value for fragment in reversed(sides) for path, value in fragment.values.items()}
    both = view.run.precision.fp16, view.run.precision.bf16
    refused = all(flag is not None and flag.value for flag in both)  # precision-fp16-and-bf16 says it
    for entry, key in _engine(view):
        value = _effective(view, trainer) if key == BATCH else trainer.get(PAIRS.get(key, ""))
        mine = entry.value.value if isinstance(entry.value, Scalar) else None
        if value is None or mine is None or mine == "auto" or mine == value.value:
            continue
        if key.endswith("enabled") and refused:
            continue
        if key == "scheduler.params.warmup_num_steps" and not value.value and "schedule.warmup_ratio" in trainer:
            continue  # the steps come from the ratio
        sign = " " if value.key.startswith("-") else ": "
        theirs = f"`{value.key}{sign}{value.raw or written(value.value)}`" if value.key else value.note
        own_file = view.fragment("deepspeed") is not None
        yield Found(
            at=entry,
            message=f"`{key}: {entry.value.raw if isinstance(entry.value, Scalar) else mine}` is not {theirs}",
            help=f'write `"{entry.name}": "auto"`' if own_file else f"make `{entry.name}` equal",
            notes=[(value, "the trainer's value")],
            fix=set_value(entry.value, '"auto"') if own_file else None,
        )


def _trains(fragment: Fragment) -> bool:
    if fragment.facts.get("own_loop"):  # a loop on accelerate: it takes the engine's values
        return False
    keys = {value.key.rpartition(".")[2].lstrip("-") for value in fragment.values.values()}
    return fragment.format in TRAINERS or SIGN in keys


def _engine(view: RunView) -> Iterator[tuple[Entry, str]]:
    """The engine's entries by DeepSpeed's key: from its own file, else from accelerate's `deepspeed_config`."""
    fragment, prefix = view.fragment("deepspeed"), ""
    if fragment is None:
        fragment, prefix = view.fragment("accelerate"), "deepspeed_config."
        if fragment is None or str(fragment.written("distributed_type")).upper() != "DEEPSPEED":
            return
    for key in (*PAIRS, BATCH):
        entry = fragment.entry(prefix + key)
        if entry is not None:
            yield entry, key


def _effective(view: RunView, trainer: dict[str, Value[object]]) -> Value[object] | None:
    """What `train_batch_size` is compared with: the trainer's batch, accumulation and processes."""
    micro, steps, world = trainer.get("batch.micro"), trainer.get("batch.accumulation"), view.run.parallel.world
    if micro is None or steps is None or world is None or view.run.parallel.tensor or view.run.batch.auto:
        return None
    if not isinstance(micro.value, int) or not isinstance(steps.value, int):
        return None
    batch = micro.value * steps.value * world.value
    note = f"{micro.value} x {steps.value} x {world.value} processes = {batch} from the trainer's keys"
    return Value(batch, "derived", note=note, place=micro.place)
