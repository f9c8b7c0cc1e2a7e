"""What a launch says of a run: its options, the arguments it passes on, the job around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from trainlint.documents import Document, Mapping, Scalar
from trainlint.formats import hf_trainer, llamafactory, trl
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, Reference, Role
from trainlint.formats.launch import command_arguments
from trainlint.formats.launch import trainers as launch_trainers
from trainlint.formats.launch.command_line import Command, Word, commands
from trainlint.formats.launch.launch import Launch, launches
from trainlint.formats.launch.slurm import Directive, gpus, memory, seconds, whole
from trainlint.formats.reading import convert, marked
from trainlint.formats.semantics import trainer_arguments as arguments
from trainlint.run import Value, path_info

NAME = "shell-launcher"
CONFIGS = (".yaml", ".yml", ".json", ".toml")
FACTORY = frozenset(("finetuning_type", "cutoff_len", "lora_target", "template", "quantization_bit", "dataset_dir"))
"""Arguments of LLaMA-Factory alone."""
COMMON = frozenset(
    (
        "learning_rate", "weight_decay", "seed", "output_dir", "max_steps", "warmup_steps", "run_name", "fp16", "bf16",
        "gradient_accumulation_steps", "save_steps", "logging_steps", "eval_steps", "local_rank", "deepspeed", "optim",
        "max_grad_norm", "gradient_checkpointing", "log_level", "do_train", "do_eval", "fsdp", "num_train_epochs",
        "resume_from_checkpoint", "warmup_ratio", "report_to",
    )
)  # fmt: skip
"""Arguments of the Trainer that other scripts have too."""
_ENVIRONMENT: dict[str, frozenset[str]] = {
    "NPROC_PER_NODE": frozenset(("llamafactory", "swift")),
    "NNODES": frozenset(("llamafactory", "swift")),
    "WORLD_SIZE": frozenset(("python",)),
    "ACCELERATE_MIXED_PRECISION": frozenset(("torchrun", "python", "deepspeed", "llamafactory", "swift")),
}
"""Variables by the launchers under which they count; `accelerate launch` and torchrun set their own over them."""
_DRIVERS = ("verl.", "ray.", "openrlhf.", "nemo_rl.")
"""Modules whose one process starts workers on other devices."""
FORMATS: dict[str, Format] = {
    "transformers": hf_trainer.FORMAT,
    "trl": trl.FORMAT,
    "llamafactory": llamafactory.FORMAT,
    **launch_trainers.FORMATS,
}
"""Trainers whose formats read their arguments."""


@lru_cache(maxsize=8)
def parsed(file: str, text: str) -> tuple[tuple[Command, ...], tuple[Launch, ...]]:
    """A script's commands, and those that launch something."""
    found = commands(file, text)
    return found, tuple(launches(found))


def trainer(start: Launch) -> str:
    """Whose arguments the program takes: transformers, trl, llamafactory, diffusers, one of `FORMATS`, or empty."""
    names = frozenset(start.arguments)
    program = (start.program.text or "") if start.program is not None else ""
    if start.launcher in ("llamafactory", "trl"):
        return start.launcher if names - {"config"} else ""
    if other := launch_trainers.whose(start):
        return other
    if start.launcher in ("axolotl", "torchtune", "mlx-lm", "swift", "oumi", "litgpt") or "no_trainer" in program:
        return ""
    if "finetuning_type" in names or ("stage" in names and names & FACTORY):
        return "llamafactory"
    if "pretrained_model_name_or_path" in names and names & {"max_train_steps", "train_batch_size"}:
        return "diffusers"
    known = names & arguments.ARGUMENTS
    sure = "per_device_train_batch_size" in names or (len(known) >= 3 and bool(known - COMMON))
    own = names & trl.OWN
    if own and "model_name_or_path" in names and (sure or own & {"use_peft", "lora_target_modules"}):
        return "trl"
    return "transformers" if sure and "train_batch_size" not in names else ""


def config_files(start: Launch) -> list[Word]:
    """Configs that the program is given: `--config x.yaml`, or a YAML among its arguments."""
    words = [*start.positional]
    for name in ("config", "config_file", "config_path", "c"):
        if name in start.arguments:
            words += start.arguments[name].values[:1]
    return [word for word in words if (word.text or "").endswith(CONFIGS)]


def weight(start: Launch) -> tuple[bool, bool, bool]:
    """How much a launch says: a trainer's arguments, a config, a launcher of processes."""
    return bool(trainer(start)), bool(config_files(start)), start.launcher != "python"


def arguments_of(document: Document, start: Launch) -> Fragment:
    """The arguments as the trainer's own format reads them; keys carry their dashes."""
    who = trainer(start)
    marks = {**marked("hf-trainer"), **marked("trl")}
    flags = frozenset(name for name, key in marks.items() if (info := path_info(key.path)) and info.kind == "flag")
    if who in launch_trainers.FORMATS:
        marks = marked(who)
        root, unknown = launch_trainers.mapping(who, start)
    else:
        root, unknown = command_arguments.mapping(start.arguments.values(), flags, start.command.place)
    if who in FORMATS:
        fragment = FORMATS[who].read(document, root)
        if who == "llamafactory":
            marks |= marked("llamafactory")
        launch_trainers.finish(fragment, who, start)
    else:
        fragment = Fragment(NAME, document, root, framework=who)
        _read(fragment, "diffusers" if who == "diffusers" else "", root)
        if who == "diffusers" and "lora" in ((start.program.text or "") if start.program else "").lower():
            assert start.program is not None
            fragment.values["method"] = Value("lora", "derived", place=start.program.place, note="the script's name")
    fragment.format = NAME
    fragment.values = {path: _as_flag(value, start) for path, value in fragment.values.items()}
    fragment.launches = bool(who) and not config_files(start)
    paths = frozenset(marks[name].path for name in unknown if name in marks and marks[name].path)
    fragment.facts |= {"trainer": who, "unknown": paths, "open": start.command.open}
    return fragment


def add_launcher(fragment: Fragment, start: Launch) -> None:
    """Processes, machines, mixed precision and engine from the launcher's options and the environment."""
    section = "torchrun" if start.launcher == "torchtune" else start.launcher
    options = start.arguments if start.launcher == "trl" else start.options
    root, unknown = command_arguments.mapping(options.values(), frozenset(), start.command.place)
    given = fragment.values.get("precision.mixed")
    _read(fragment, section, root)
    asked = fragment.values.get("precision.mixed")
    if given is not None and asked is not None and given is not asked:
        lost = replace(asked, note="what the program gives to `Accelerator(…)` wins over the launcher")
        fragment.values["precision.mixed"] = given if given.value == asked.value else given.beside(lost)
    for name, word in start.command.environment.items():
        node = command_arguments.scalar(word)
        key = marked(NAME).get(f"environment.{name}")
        if key is not None and node is not None and start.launcher in _ENVIRONMENT.get(name, ()):
            value = convert(NAME, name, node, key)
            if value is not None:
                fragment.values.setdefault(key.path, value)
    _visible(fragment, start)
    values = fragment.values
    if section == "torchrun":
        if "nproc_per_node" not in options:
            values.setdefault("parallel.per_node", _derived(1, start, "torchrun starts one process by default"))
        if "nnodes" in options and "parallel.nodes" not in values:
            values.pop("parallel.per_node", None)  # how many machines is not known
    elif section == "deepspeed":
        include = options.get("include", options.get("i"))
        if include is not None and include.values and (count := _included(include.values[0])) is not None:
            word = include.values[0]
            values["parallel.world"] = Value(count, "written", include.key, word.place, word.raw, file_format=NAME)
    elif start.launcher == "python" and not unknown and _alone(fragment, start):
        values.setdefault("parallel.world", _derived(1, start, "`python` starts one process"))


def _visible(fragment: Fragment, start: Launch) -> None:
    word = start.command.environment.get("CUDA_VISIBLE_DEVICES")
    if word is None or word.text is None:
        return
    ids = [part for part in word.text.split(",") if part.strip()]
    if ids and "-1" not in ids:
        before = fragment.values.get("device.count")
        value: Value[object] = Value(
            len(ids), "written", "CUDA_VISIBLE_DEVICES", word.place, word.raw, file_format=NAME
        )
        lost = () if before is None else (replace(before, note="`CUDA_VISIBLE_DEVICES` hides the others"),)
        fragment.values["device.count"] = value.beside(*lost)


def _included(word: Word) -> int | None:
    """How many GPUs `--include localhost:0,1@host:0` names; None where a host stands without any."""
    count = 0
    for host in (word.text or "").split("@"):
        _, colon, slots = host.partition(":")
        if not colon or not slots:
            return None
        count += len(slots.split(","))
    return count or None


def _alone(fragment: Fragment, start: Launch) -> bool:
    """Whether nothing but the command itself starts processes."""
    if start.wrapper in ("mpirun", "mpiexec", "jsrun", "ibrun"):
        return False
    if start.module and start.program is not None and (start.program.text or "").startswith(_DRIVERS):
        return False
    tasks = [value for value in (fragment.facts.get("tasks"),) if value is not None]
    fits = bool(start.positional) and start.positional[0].text in ("fit", "train")
    return not fits and not (start.wrapper == "srun" and any(task != 1 for task in tasks))


def add_job(fragment: Fragment, found: dict[str, Directive], start: Launch | None) -> None:
    """What the Slurm job asks for: machines, GPUs, RAM."""
    nodes = whole(found.get("nodes"))
    if nodes is not None:
        fragment.values.setdefault("parallel.nodes", _directed(found["nodes"], nodes))
    asked = gpus(found)
    known = nodes is not None or "nodes" not in found
    if asked is not None and asked.count is not None and (known or not asked.per_node):
        count = asked.count * (nodes or 1) if asked.per_node else asked.count
        fragment.values["device.count"] = _directed(asked.directive, count)
        fragment.facts["gpus_per_node"] = asked.count if asked.per_node else None
        if asked.per_node or nodes == 1:
            fragment.values["launch.gpus"] = _directed(asked.directive, asked.count)
        if asked.name:
            fragment.values["device.name"] = _directed(asked.directive, asked.name)
    size = memory(found.get("mem"))
    if size is not None:
        fragment.values["device.host_memory"] = _directed(found["mem"], size, "byte")
        fragment.values["launch.memory"] = _directed(found["mem"], float(size), "byte")
    cores, limit = whole(found.get("cpus-per-task")), seconds(found.get("time"))
    if cores is not None:
        fragment.values["launch.cpus"] = _directed(found["cpus-per-task"], float(cores))
    if limit is not None:
        fragment.values["launch.time"] = _directed(found["time"], limit)
    for name in ("ntasks-per-node", "ntasks"):
        if name in found:
            fragment.facts["tasks"] = whole(found[name])
    if start is not None and start.wrapper == "srun" and start.launcher == "python":
        tasks = whole(found.get("ntasks-per-node"))
        if tasks is not None:
            fragment.values["parallel.per_node"] = _directed(found["ntasks-per-node"], tasks)


def add_command(fragment: Fragment, start: Launch) -> None:
    """The command as it is written, and the variables that are set for it."""
    place = start.command.place
    words = " ".join(word.raw for word in start.command.words)
    fragment.values["launch.command"] = Value(words, "written", "", place, words, file_format=fragment.format)
    if start.command.environment:
        set_for_it = {
            name: Value(word.text, "written", name, word.place, word.raw, file_format=fragment.format)
            for name, word in start.command.environment.items()
        }
        place = next(iter(set_for_it.values())).place or place
        fragment.values["launch.env"] = Value(set_for_it, "written", "env", place, "", file_format=fragment.format)


def add_references(fragment: Fragment, starts: Sequence[Launch]) -> None:
    """The scripts and configs that the launches name."""
    seen = {(one.role, one.text) for one in fragment.references}

    def name(role: Role, word: Word, key: str) -> None:
        if word.text and (role, word.text) not in seen:
            seen.add((role, word.text))
            fragment.references.append(Reference(role, word.text, word.place, key))

    for start in starts:
        if start.program is not None and not start.module and (start.program.text or "").endswith(".py"):
            name("script", start.program, start.launcher)
        for word in config_files(start):
            name("config", word, start.launcher)
        for key, mark in marked(NAME).items():
            section, _, option = key.partition(".")
            given = (start.arguments if start.launcher == "trl" else start.options).get(option)
            if section == start.launcher and mark.role and given is not None and given.values:
                name(mark.role, given.values[0], given.key)  # type: ignore[arg-type]
        engine = start.arguments.get("deepspeed") or start.arguments.get("deepspeed_config")
        if engine is not None and engine.values and (engine.values[0].text or "").endswith(CONFIGS):
            name("deepspeed", engine.values[0], engine.key)


def complete(draft: Draft) -> None:
    """The trainer's defaults, but for what only a run decides; none where arguments may be missing."""
    fragment = draft.fragments[0]
    who = fragment.facts.get("trainer")
    if fragment.facts.get("open") or not isinstance(who, str) or who not in FORMATS:
        if who:
            draft.derive("framework", who, "the arguments")
        return
    unknown = fragment.facts.get("unknown")
    for path in unknown if isinstance(unknown, frozenset) else ():
        if not draft.has(path):
            draft.possible[path] = ()
            if path in ("precision.bf16", "precision.fp16"):
                del draft.possible[path]
                draft.either(path, (True, f"`{path[10:]}` is on"), (False, f"`{path[10:]}` is off"), origin="derived")
    script = draft.fragment("python-script")
    if script is not None and who in ("transformers", "trl"):
        from trainlint.formats.scripts.defaults import prepare

        prepare(draft, script, who)
    members = draft.fragments
    draft.fragments = (replace(fragment, format=FORMATS[who].name), *members[1:])
    FORMATS[who].complete(draft)
    draft.fragments = members
    for path in [path for path, options in draft.possible.items() if not options]:
        del draft.possible[path]


def _read(fragment: Fragment, section: str, root: Mapping) -> None:
    for dotted, key in marked(NAME).items():
        group, _, name = dotted.partition(".")
        entry = root.entry(name) if group == section else None
        if entry is None:
            continue
        if key.path:
            value = convert(NAME, name, entry.value, key)
            if value is not None:
                raw = entry.key.raw.lstrip("-")
                fragment.values[key.path] = replace(value, key=f"--{raw}")
        if key.role == "model" and isinstance(entry.value, Scalar) and isinstance(entry.value.value, str):
            fragment.references.append(Reference("model", entry.value.value, entry.value.place, name))


def _as_flag(value: Value[object], start: Launch) -> Value[object]:
    """A value under the option as the user wrote it: `--bf16`."""
    name = value.key.partition(".")[0]
    named = (value.key, name, command_arguments.NEGATED + name)
    option = next((start.arguments[one] for one in named if one in start.arguments), None)
    key = option.key if option is not None else value.key
    return replace(value, key=key, file_format=NAME)


def _derived(value: object, start: Launch, note: str) -> Value[object]:
    return Value(value, "derived", start.word.text or "", start.word.place, start.word.raw, note=note, file_format=NAME)


def _directed(directive: Directive, value: object, unit: str = "") -> Value[object]:
    key = f"#SBATCH --{directive.name}"
    return Value(value, "written", key, directive.place, directive.text, unit, file_format=NAME)
