"""Compact mined key tables into schemas/trainlint_schemas/history.

    python tools/compact_history.py SOURCE [TARGET]

SOURCE holds one <framework>.json a framework: for each section (a config class, a JSON path, an enum, a command line)
and key the types, default, choices and versions, as read from the released packages' source, one release a minor
version; and renames.json, further renames with their notes. The result keeps what a linter can use, drops internal
classes, says once what sections share (`inherits`, `without`), and is sorted: the same input gives the same bytes.

An entry: `types` joined by "|"; `default` (left out: not stated or not a constant); `defaults`, where it changed, as
[since, value] (value left out: not a constant); `enum`, the choices or the name of the section that lists them;
`choices`, where they changed, as [version, added, removed]; `first` (left out: the section's), `removed`, `deprecated`,
`renamed`, `required`, `absent` (versions between that lack it), `note`.
"""

import json
import re
import sys
from pathlib import Path

KEEP = {
    "dstack": r"(DevEnvironment|Task|Service|Fleet|Volume)Configuration|Profile|ProfilesConfig|ProfileRetry|"
    r"ResourcesSpec|GPUSpec|DiskSpec|CPUSpec|RepoSpec|UnixUser|VolumeMountPoint|InstanceMountPoint|FilePathMapping|"
    r"RateLimit|ProbeConfig|UtilizationPolicy|Schedule|ScalingSpec|SSHParams|SSHHostParams|NodeGroup|ReplicaGroup|enum:.*",
    "ms-swift": r"(Sft|Pretrain|RLHF|Train|Export|Infer|Deploy|Eval|Rollout|Sampling)Arguments|"
    r"Megatron(Sft|Pretrain|RLHF|Train|Export)Arguments|BaseArguments",
    "verl": r"yaml:(_generated_)?ppo(_megatron)?_trainer\.yaml|yaml:sft_trainer(_engine)?\.yaml|"
    r"yaml:(generation|evaluation)\.yaml",
    "kubeflow-training": r"(?!.*(List|Status|Condition)$).*",
    "kubeflow-trainer-api": r"(?!.*(List|Status|Metric|Request)$).*",
    "axolotl": r"(?!(AxolotlConfigWCapabilities|GPUCapabilities|EnvCapabilities|HyperparametersConfig|ModelInputConfig|"
    r"ModelOutputConfig|LoraConfig|ReLoRAConfig|LISAConfig|WandbConfig|CometConfig|GradioConfig|MLFlowConfig)$).*",
}
# Tables without a schema behind them: a null there is "none stated", elsewhere it is None.
UNSTATED = {"torchtune", "skypilot", "kubeflow-training", "kubeflow-trainer-api"}
TRAINING = "transformers:Seq2SeqTrainingArguments"
INHERITS = {
    "trl": (
        "transformers:TrainingArguments",
        r"(?!(AlignProp|DDPO|Model|Dataset|DatasetMixture|OnpolicyRuntime)Config)\w+Config",
    ),
    "unsloth": ("transformers:TrainingArguments", r"UnslothTrainingArguments"),
    "llamafactory": (TRAINING, r"TrainingArguments"),
    "ms-swift": (TRAINING, r"(Sft|Pretrain|RLHF|Train)Arguments"),
}
# What a key left out comes to, where the field itself says nothing: read in the code that resolves it.
SAME = {
    ("accelerate", "fsdp_config"): {
        "fsdp_sharding_strategy": "FULL_SHARD",
        "fsdp_auto_wrap_policy": "NO_WRAP",
        "fsdp_offload_params": False,
        "fsdp_activation_checkpointing": False,
        "fsdp_version": 1,
    },
    ("accelerate", "deepspeed_config"): {
        "zero_stage": 2,
        "offload_optimizer_device": "none",
        "offload_param_device": "none",
    },
    ("transformers", "BitsAndBytesConfig"): {"bnb_4bit_compute_dtype": "float32", "bnb_4bit_quant_storage": "uint8"},
    ("transformers", "TrainingArguments"): {"gradient_checkpointing": False},
    ("transformers", "Seq2SeqTrainingArguments"): {"gradient_checkpointing": False},
    ("lightning", "Trainer"): {"precision": "32-true"},
    ("deepspeed", ""): {"gradient_clipping": 0.0},
}
CHANGED = {
    ("transformers", "fsdp_config", "version"): [["5.0.0", 1], ["5.10.4", 2]],
    ("transformers", "fsdp_config", "reshard_after_forward"): [["5.0.0"], ["5.10.4", True]],
}
# Keys of one command that the mined classes cannot show, because the command's own default object sets them.
ADDED = {
    ("litgpt", f"setup:{command}"): {
        "train.micro_batch_size": {"types": "int", "default": micro, "first": "0.5.13"},
        "train.global_batch_size": {"types": "int", "default": batch, "first": "0.5.13"},
    }
    for command, micro, batch in (
        ("finetune/lora", 1, 16),
        ("finetune/full", 1, 16),
        ("pretrain", 4, 512),
    )
}
# DeepSpeed's JSON, by path: which mined tables hold the keys of an object.
DEEPSPEED = {
    "": ("json:(top level)",),
    "zero_optimization": ("DeepSpeedZeroConfig",),
    "zero_optimization.offload_optimizer": ("DeepSpeedZeroOffloadOptimizerConfig",),
    "zero_optimization.offload_param": ("DeepSpeedZeroOffloadParamConfig",),
    "zero_optimization.zenflow": ("ZenFlowConfig",),
    "zero_optimization.leaf_module": ("DeepSpeedZeroLeafModuleConfig",),
    "fp16": ("json:fp16", "DeepSpeedFP16Config"),
    "bf16": ("DeepSpeedBF16Config",),
    "torch_autocast": ("json:torch_autocast",),
    "optimizer": ("json:optimizer",),
    "scheduler": ("json:scheduler",),
    "aio": ("json:aio",),
    "comms_logger": ("CommsLoggerConfig",),
    "tensorboard": ("TensorBoardConfig",),
    "wandb": ("WandbConfig",),
    "csv_monitor": ("CSVConfig",),
    "comet": ("CometConfig",),
    "compile": ("CompileConfig",),
    "tensor_parallel": ("TPTrainingConfig",),
    "hybrid_engine": ("HybridEngineConfig",),
}
DEEPSPEED_SINCE = {"": {"bf16": "0.9.5"}, "bf16": {"enabled": "0.9.5", "immediate_grad_update": "0.13.5"}}
# Keys that the scan of DeepSpeed's constants puts at the top though they belong deeper.
MISPLACED = re.findall(
    r"\w+",
    "enabled min_gpus max_gpus model_parallel_size num_gpus_per_node min_time version prefer_larger_batch "
    "ignore_non_elastic_batch_info max_train_batch_size micro_batch_sizes mode attention writer model_info "
    "shared_parameters different_groups",
)
PLACED = {  # the objects whose keys are known only from constants: path to the keys
    "activation_checkpointing": "partition_activations contiguous_memory_optimization cpu_checkpointing "
    "number_checkpoints profile synchronize_checkpoint_boundary",
    "flops_profiler": "enabled recompute_fwd_factor profile_step module_depth top_modules detailed output_file",
    "data_types": "grad_accum_dtype",
}


def number(version: str) -> list[int]:
    """The numbers of a version, to sort by."""
    return [int(digits) for digits in re.findall(r"\d+", version)]


def constant(value: object) -> bool:
    """Whether a default is a value, not an expression."""
    return not (isinstance(value, dict) and "$expr" in value)


def entry(mined: dict, first: str, unstated: bool, enums: dict[str, list[str]]) -> dict:
    """One compact entry from one mined entry."""
    new: dict = {}
    types = mined["types"]
    if types:
        every = [types, *(old for _, old in mined.get("types_history", ()))]
        new["types"] = "|".join(
            dict.fromkeys(name.replace("Optional", "null") for names in every for name in names or ())
        )
    stated = constant(mined["default"]) and not mined.get("required")
    if mined["default"] is None and (types is None or (unstated and "null" not in types)):
        stated = False
    if stated:
        new["default"] = mined["default"]
    history = mined.get("default_history")
    if history and len(history) > 1:
        new.pop("default", None)
        new["defaults"] = [[since, value] if constant(value) else [since] for since, value in history]
    if mined["enum"]:
        name = next((name for name in types or () if set(enums.get(f"enum:{name}", ())) >= set(mined["enum"])), None)
        new["enum"] = f"enum:{name}" if name else mined["enum"]
        if not name and mined.get("enum_history"):
            new["choices"] = [[step["version"], step["added"], step["removed"]] for step in mined["enum_history"]]
    if mined["first_seen"] != first:
        new["first"] = mined["first_seen"]
    renamed = mined["renamed_to"]
    for old, key in (("removed_in", "removed"), ("deprecated_in", "deprecated"), ("absent_in", "absent")):
        if mined.get(old):
            new[key] = mined[old]
    if renamed:
        new["renamed"] = renamed
    if mined.get("required"):
        new["required"] = True
    return new


def deepspeed(tables: dict) -> dict:
    """DeepSpeed's tables regrouped by the path of the JSON object they describe."""
    placed: dict = {}
    loose = {**tables["json:(unplaced)"], **tables["constants:deepspeed/runtime/constants.py"]}
    loose |= tables["constants:deepspeed/profiling/constants.py"]
    for path, names in DEEPSPEED.items():
        keys: dict = {}
        for name in names:
            for key, mined in tables[name].items():
                older = keys.get(key)
                if older and number(older["first_seen"]) < number(mined["first_seen"]):
                    mined = {**mined, "first_seen": older["first_seen"]}
                keys[key] = mined
                if mined.get("alias"):
                    keys[mined["alias"]] = mined
        placed[path] = keys
    for path, text in PLACED.items():
        placed[path] = {key: loose[key] for key in text.split()}
    for key in MISPLACED:
        placed[""].pop(key)
    for path, since in DEEPSPEED_SINCE.items():
        for key, version in since.items():
            placed[path][key] = {**placed[path][key], "first_seen": version}
    return placed | {name: table for name, table in tables.items() if name.startswith("enum:")}


def share(sections: dict[str, dict], fixed: dict[str, str]) -> None:
    """Let each section inherit from the earlier one that saves most."""
    done: dict[str, dict] = {}
    for name in sorted(sections, key=lambda name: (-len(sections[name]["keys"]), name)):
        keys = sections[name]["keys"]
        best, saved = None, 400
        for other, others in done.items():
            if fixed.get(name) != fixed.get(other) or name.startswith("enum:"):
                continue
            same = sum(len(json.dumps([key, keys[key]])) for key in keys if others.get(key) == keys[key])
            gain = same - sum(len(key) + 4 for key in others if key not in keys)
            if gain > saved and sections[name]["first"] == sections[other]["first"]:
                best, saved = other, gain
        done[name] = dict(keys)
        if best:
            sections[name]["inherits"] = best
            if without := sorted(done[best].keys() - keys.keys()):
                sections[name]["without"] = without
            sections[name]["keys"] = {key: value for key, value in keys.items() if done[best].get(key) != value}
        elif name in fixed:
            sections[name]["inherits"] = fixed[name]


def compact(framework: str, mined: dict, renames: list[dict]) -> dict:
    """The compact table of one framework."""
    meta = mined.pop("_meta")
    versions = meta["versions_mined"]
    enums = {name: list(table) for name, table in mined.items() if name.startswith("enum:")}
    spans = meta["sections"]
    if framework == "deepspeed":
        mined = deepspeed(mined)
    sections: dict[str, dict] = {}
    for name, table in mined.items():
        if not re.fullmatch(KEEP.get(framework, ".*"), name) or name.startswith("constants:") or not table:
            continue
        first = min((row["first_seen"] for row in table.values()), key=number)
        keys = {key: entry(row, first, framework in UNSTATED, enums) for key, row in table.items()}
        for key, value in SAME.get((framework, name), {}).items():
            keys[key].pop("defaults", None)
            keys[key]["default"] = value
        sections[name] = {"first": first, "keys": keys}
        last = spans.get(name, {}).get("last", versions[-1])
        if last != versions[-1]:
            sections[name]["last"] = last
    for rename in renames:
        section = {"DeepSpeedZeroConfig": "zero_optimization", "(top level)": ""}.get(
            rename["section"], rename["section"]
        )
        row = sections.get(section, {}).get("keys", {}).get(rename["old"])
        if rename["framework"] == framework and row is not None:
            if re.fullmatch(r"\w+", rename["new"] or "") and not row.get("renamed"):
                row["renamed"] = rename["new"]
            elif rename["new"] is None:
                row.pop("renamed", None)
            if rename["note"]:
                row["note"] = rename["note"]
    for row in (row for section in sections.values() for row in section["keys"].values()):
        if "renamed" in row and "removed" not in row and "deprecated" not in row:  # not old: another way
            row["note"] = "; ".join(filter(None, (row.pop("renamed"), row.get("note"))))
    for (owner, section, key), history in CHANGED.items():
        if owner == framework:
            sections[section]["keys"][key].pop("default", None)
            sections[section]["keys"][key]["defaults"] = history
    for (owner, section), keys in ADDED.items():
        if owner == framework:
            sections[section]["keys"].update(keys)
    parent, pattern = INHERITS.get(framework, ("", "(?!)"))
    share(sections, {name: parent for name in sections if re.fullmatch(pattern, name)})
    result: dict = {"package": meta["package"], "versions": versions}
    pins = {package: meta[f"{package}_pin"] for package in ("transformers", "accelerate") if f"{package}_pin" in meta}
    if pins:
        result["pins"] = {package: {v: pin for v, pin in pin.items() if pin} for package, pin in pins.items()}
    result["sections"] = {name: sections[name] for name in sorted(sections)}
    return result


def text(table: dict) -> str:
    """JSON with one key a line, keys sorted."""
    lines = ["{"]
    lines += [f"{json.dumps(name)}: {json.dumps(table[name])}," for name in table if name != "sections"]
    lines.append('"sections": {')
    blocks = []
    for name, section in table["sections"].items():
        head = {key: value for key, value in section.items() if key != "keys"}
        keys = ",\n".join(f" {json.dumps(key)}: {json.dumps(section['keys'][key])}" for key in sorted(section["keys"]))
        blocks.append(f'{json.dumps(name)}: {json.dumps(head)[:-1]}, "keys": {{\n{keys}\n}}}}')
    return "\n".join([*lines, ",\n".join(blocks), "}", "}"]) + "\n"


def main() -> None:
    """Compact all frameworks of the folder given."""
    source = Path(sys.argv[1])
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parents[1] / "schemas/trainlint_schemas/history"
    target.mkdir(exist_ok=True)
    renames = json.loads((source / "renames.json").read_text())
    for path in sorted(source.glob("*.json")):
        if path.stem != "renames":
            table = compact(path.stem, json.loads(path.read_text()), renames)
            (target / path.name).write_text(text(table))
            print(f"{path.stem}: {len(table['sections'])} sections, {(target / path.name).stat().st_size} bytes")


if __name__ == "__main__":
    main()
