"""Who counts where several files say one thing of a run, and why.

Mostly the command line wins over the config, and the config over what it names. What differs:

* mixed precision: what a script gives to `Accelerator(…)` wins over the launcher, whose flag wins over the variable
  and its config (accelerate state.py, commands/launch.py);
* the engine: a DeepSpeed file wins over accelerate's own block and flags; the Trainer's `deepspeed` and `fsdp` win over
  both (accelerate utils/dataclasses.py, transformers training_args.py);
* accumulation in a loop of one's own: accelerate takes DeepSpeed's number, then its own config's (accelerator.py);
* checkpointing is on where either side turns it on;
* processes: torchrun, `deepspeed` and `python` read no accelerate config.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainlint.formats import Draft, Fragment
from trainlint.run import Value

DEFAULT = ("launcher", "flag", "", "python-script", "accelerate", "deepspeed", "peft-adapter", "model-config")
"""Flags on the command line, the root (""), then what it names."""
MIXED = ("python-script", "launcher", "flag", "", "accelerate")
ENGINE = ("launcher", "", "deepspeed", "flag", "python-script", "accelerate")
LOOP = ("deepspeed", "accelerate", "launcher", "flag", "", "python-script")
EITHER = ("accelerate", *DEFAULT)
FLAGS = frozenset(("--zero_stage", "--offload_optimizer_device", "--offload_param_device", "--mixed_precision"))
"""Options of accelerate among what a launcher says; the rest is what it passes on."""
LOOPS = frozenset(("accelerate", "diffusers", "torch"))
"""Trainers that are a loop of the script's own."""
MATCHED = frozenset(
    (
        "batch.micro", "batch.accumulation", "batch.effective", "clip", "optimizer.lr", "optimizer.weight_decay",
        "optimizer.epsilon", "schedule.warmup_steps", "precision.bf16", "precision.fp16",
    )
)  # fmt: skip
"""What `HfTrainerDeepSpeedConfig` compares (transformers integrations/deepspeed.py)."""
DEFAULTS: dict[str, object] = {"batch.micro": 8, "batch.accumulation": 1, "clip": 1.0}
"""What `TrainingArguments` hold where nothing is written: DeepSpeed's numbers are compared with these too."""
COMPUTE = {"no": "", "fp16": "float16", "bf16": "bfloat16", "fp8": "bfloat16"}
NAMES = {
    "launcher": "the command line",
    "flag": "the launcher's flag",
    "python-script": "the script",
    "accelerate": "the accelerate config",
    "deepspeed": "the DeepSpeed config",
    "peft-adapter": "the adapter's config",
    "model-config": "the model's config",
    "": "the config",
}


def merged(members: Sequence[Fragment]) -> dict[str, Value[object]]:
    """The members' values by path; what disagrees with the winner is kept among its losers, with the reason."""
    said: dict[str, list[tuple[int, str, Value[object]]]] = {}
    for at, member in enumerate(members):
        for path, value in member.values.items():
            kind = _kind(member, members[0], value, path)
            order = _order(path, members[0], value)
            rank = order.index(kind) if kind in order else len(order)
            said.setdefault(path, []).append((rank * len(members) + at, kind, value))
    values: dict[str, Value[object]] = {}
    for path, found in said.items():
        (_, first, winner), *rest = sorted(found, key=lambda one: one[0])
        losers = [
            replace(value, note=_why(path, first, kind, members[0]))
            for _, kind, value in rest
            if value.value != winner.value
        ]
        values[path] = winner.beside(*losers) if losers else winner
    _processes(values, members)
    return values


def explain(draft: Draft) -> None:
    """Keep what loses to a value without a file of its own: the trainer's defaults, the launcher's mixed precision."""
    if draft.get("framework") in ("transformers", "trl", "llamafactory") and draft.fragment("deepspeed") is not None:
        _compared(draft)
    mixed, compute = draft.values.get("precision.mixed"), draft.values.get("precision.compute")
    if mixed is None or compute is None or not mixed.written or compute.losers:
        return
    for path, dtype in (("precision.bf16", "bfloat16"), ("precision.fp16", "float16")):
        flag = draft.values.get(path)
        if flag is not None and flag.value is True and compute.value == dtype != COMPUTE.get(str(mixed.value)):
            whose = "DeepSpeed" if flag.file_format == "deepspeed" else "the trainer"
            lost = replace(mixed, note=f"`{flag.key or path[10:]}` of {whose} wins over the launcher")
            draft.values["precision.compute"] = compute.beside(lost)


def _compared(draft: Draft) -> None:
    """DeepSpeed's numbers that differ from what the Trainer holds by default."""
    for path, default in DEFAULTS.items():
        value = draft.values.get(path)
        if value is not None and value.file_format == "deepspeed" and value.value != default:
            note = "transformers, whose Trainer stops where DeepSpeed's value is another, unless it is `auto`"
            draft.values[path] = value.beside(Value(default, "default", unit=value.unit, note=note))


def settle(draft: Draft, said: Value[object], product: int, note: str) -> None:
    """Let the product of batch, accumulation and processes win over a `train_batch_size` that is another number."""
    if said.value != product:
        lost = replace(said, note="batch, accumulation and processes make another number, which DeepSpeed refuses")
        draft.values["batch.effective"] = Value(product, "derived", unit="sample", note=note, losers=(lost,))


def _kind(member: Fragment, root: Fragment, value: Value[object], path: str) -> str:
    if path == "precision.mixed" and member.format == "python-script":
        return "python-script"
    if member is root:
        return ""
    if member.starts:
        return "flag" if value.key in FLAGS else "launcher"
    return member.format


def _order(path: str, root: Fragment, value: Value[object]) -> tuple[str, ...]:
    if path == "precision.mixed":
        return MIXED
    if path.startswith("sharding."):
        return ENGINE
    if path == "checkpointing.kind" and value.file_format == "accelerate":
        return EITHER  # accelerate's block is read where it turns it on
    if path == "batch.accumulation" and (root.facts.get("trainer") in LOOPS or root.facts.get("own_loop")):
        return LOOP
    return DEFAULT


def _why(path: str, winner: str, loser: str, root: Fragment) -> str:
    if path == "checkpointing.kind" and winner == "accelerate":
        return "either side turns it on"
    if loser == "deepspeed" and winner in ("", "launcher") and path in MATCHED:
        return "the Trainer stops where DeepSpeed's value is another than its own, unless it is `auto`"
    if winner == loser:
        return "the first one counts"
    own = NAMES["python-script"] if root.format == "python-script" else NAMES["launcher"] if root.starts else NAMES[""]
    one, other = (own if kind == "" else NAMES.get(kind, kind) for kind in (winner, loser))
    return f"{one} wins over {other}"


def _processes(values: dict[str, Value[object]], members: Sequence[Fragment]) -> None:
    """A launcher that starts so many processes on each machine does not ask accelerate's config for their number."""
    world, each = values.get("parallel.world"), values.get("parallel.per_node")
    launched = any(each is member.values.get("parallel.per_node") and member.starts for member in members)
    if each is None or not launched or world is None or world.file_format != "accelerate":
        return
    del values["parallel.world"]
    nodes = values.get("parallel.nodes")
    machines = nodes.value if nodes is not None and isinstance(nodes.value, int) else 1
    if isinstance(each.value, int) and each.value * machines != world.value:
        note = "the launcher that starts the processes reads no accelerate config"
        values["parallel.per_node"] = each.beside(replace(world, note=note))
