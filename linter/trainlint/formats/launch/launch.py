"""From a shell command to a launch: which launcher with which options, and what it starts with which arguments.

Launchers behind `srun`, `nohup`, `uv run` and the like are found too. Options are named with underscores and without
dashes (`num_processes`), however they are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from trainlint.documents import Place
from trainlint.formats.launch.command_line import Command, Word

Launcher = Literal[
    "accelerate", "torchrun", "deepspeed", "python", "llamafactory", "axolotl", "torchtune", "mlx-lm", "trl", "swift",
    "oumi", "composer", "litgpt",
]  # fmt: skip

WRAPPERS = frozenset(
    (
        "srun", "sudo", "nohup", "env", "time", "timeout", "uv", "poetry", "pipenv", "conda", "mamba", "micromamba",
        "mpirun", "mpiexec", "singularity", "apptainer", "numactl", "nice", "stdbuf", "exec", "nsys", "ncu",
        "xvfb-run", "pdm", "hatch", "rye", "pixi", "taskset", "command", "enroot", "docker", "podman", "jsrun", "ibrun",
        "ray",
    )
)  # fmt: skip
"""Programs that start what follows them."""

BARE: Mapping[str, frozenset[str]] = {
    "accelerate": frozenset(
        (
            "multi_gpu", "cpu", "use_deepspeed", "use_fsdp", "use_megatron_lm", "tpu", "ipex", "use_xpu", "quiet", "q",
            "module", "m", "no_python", "debug", "same_network", "dynamo_use_dynamic", "dynamo_use_fullgraph",
            "enable_cpu_affinity", "mps", "tpu_use_sudo", "tpu_use_cluster", "use_parallelism_config",
            "dynamo_use_regional_compilation", "use_mps_device",
        )
    ),
    "torchrun": frozenset(("standalone", "module", "m", "no_python", "run_path", "use_env")),
    "deepspeed": frozenset(
        (
            "module", "no_python", "no_local_rank", "no_ssh", "no_ssh_check", "force_multi", "save_pid",
            "bind_cores_to_rank", "elastic_training", "disable_nccl",
        )
    ),
    "composer": frozenset(("m", "module_mode", "c", "command_mode", "v", "verbose")),
}  # fmt: skip
"""Options that take no value (`-m` included: the word behind it is the program)."""

MODULES: Mapping[str, Launcher] = {
    "accelerate.commands.launch": "accelerate",
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "deepspeed.launcher.runner": "deepspeed",
    "axolotl.cli.train": "axolotl",
    "axolotl.cli": "axolotl",
    "mlx_lm.lora": "mlx-lm",
    "mlx_lm": "mlx-lm",
    "llamafactory.cli": "llamafactory",
}
"""Modules of `python -m` and `launch -m` that are launchers or trainers by themselves."""

_TRAINS = re.compile(r"train|tun(e|ing)|sft|dpo|grpo|ppo|orpo|kto|rlhf|lora|alignment|distill", re.IGNORECASE)
_ELSE = re.compile(r"eval|test|infer|predict|generat|prepare|preprocess|convert|merge|export|download|serve|chat|plot")
_GIVEN = frozenset(("do_train", "per_device_train_batch_size", "num_train_epochs", "train_batch_size"))
"""Arguments that only a training takes."""
_INSTALLS = frozenset(("install", "add", "pip", "sync", "uninstall", "remove"))
_NUMBER = re.compile(r"-\.?\d")


@dataclass(frozen=True, slots=True)
class Option:
    """One option: `key` as written, `name` normalised, its values (none for a bare flag)."""

    name: str
    key: str
    place: Place
    values: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True)
class Launch:
    """A command that starts a training.

    `launcher` starts `program` (a path, or a module where `module`) with `arguments`; what stands among them without
    an option's name is in `positional`. `options` are the launcher's own. `wrapper` is what stands before it (`srun`).
    """

    launcher: Launcher
    command: Command
    word: Word
    options: Mapping[str, Option] = field(default_factory=dict)
    program: Word | None = None
    module: bool = False
    arguments: Mapping[str, Option] = field(default_factory=dict)
    positional: tuple[Word, ...] = ()
    wrapper: str = ""

    @property
    def trains(self) -> bool:
        """Whether it looks like a training: any launcher of processes or a trainer, `python` by the program's name."""
        name = (self.program.text or "").rpartition("/")[2] if self.program is not None else ""
        if self.launcher != "python":
            return not _ELSE.search(name) or bool(_TRAINS.search(name))
        fits = bool(self.positional) and self.positional[0].text in ("fit", "train")
        told = bool(_TRAINS.search(name)) or not _GIVEN.isdisjoint(self.arguments)
        return fits or (told and not _ELSE.search(name))


def launch(command: Command) -> Launch | None:
    """The launch that a command is, or None."""
    words = list(command.words)
    wrapper = ""
    name = _name(words[0])
    if name in WRAPPERS:
        wrapper = name
        if any(word.text in _INSTALLS for word in words[1:3]):
            return None
        for at, word in enumerate(words[1:], 1):
            kind = _kind(word)
            started = _started(kind, command, words[at:], wrapper) if kind is not None else None
            if started is not None:
                return started
            if name == "uv" and (word.text or "").endswith(".py"):
                return _python(command, words[0], words[at:], wrapper)
        return None
    kind = _kind(words[0])
    if kind is None:
        return None
    return _started(kind, command, words, wrapper)


def options(words: Sequence[Word], bare: frozenset[str] | None = None) -> tuple[dict[str, Option], list[Word], int]:
    """Options among words. With `bare` (a launcher's) the first word that is none ends them; without (a program's),
    an option takes all words up to the next one. Returns the options, the other words, and where it ended."""
    found: dict[str, Option] = {}
    others: list[Word] = []
    at = 0
    while at < len(words):
        word = words[at]
        text = word.text if word.text is not None else word.cells.text
        at += 1
        if not text.startswith("-") or text == "-" or _NUMBER.match(text):
            if bare is not None:
                return found, others, at - 1
            others.append(word)
            continue
        key, equals, _ = text.partition("=")
        name = key.lstrip("-").replace("-", "_")
        if equals:
            found[name] = Option(name, key, _key_place(word, key), (behind(word, len(key) + 1),))
            continue
        values: list[Word] = []
        if bare is None:
            while at < len(words) and not _is_option(words[at]) and not (values and words[at].text is None):
                values.append(words[at])
                at += 1
        elif name not in bare and at < len(words):
            values.append(words[at])
            at += 1
        elif name in ("m", "module"):
            return {**found, name: Option(name, key, word.place)}, others, at
        found[name] = Option(name, key, word.place, tuple(values))
    return found, others, at


def _is_option(word: Word) -> bool:
    text = word.text if word.text is not None else word.cells.text
    return text.startswith("-") and len(text) > 1 and not _NUMBER.match(text)


def _key_place(word: Word, key: str) -> Place:
    place = word.place
    if place.line != place.end_line:
        return place
    return place._replace(end_column=min(place.end_column, place.column + len(key)))


def behind(word: Word, length: int) -> Word:
    """What stands behind `length` characters of a word, the value of `--key=value`, as a word of its own."""
    text = None if word.text is None else word.text[length:]
    place = word.place
    raw = word.raw
    if place.line == place.end_line and len(raw) > length and raw[: length - 1] == word.cells.text[: length - 1]:
        place = place._replace(column=place.column + length)
        raw = raw[length:]
    cells = word.cells._replace(text=word.cells.text[length:], stands=word.cells.stands[length:])
    return Word(text, raw, place, word.used, cells)


def _name(word: Word) -> str:
    return (word.text or "").rpartition("/")[2]


def _kind(word: Word) -> str | None:
    name = _name(word)
    if name in ("accelerate", "torchrun", "deepspeed", "axolotl", "trl", "swift", "oumi", "composer", "litgpt"):
        return name
    if name in ("llamafactory-cli", "lmf"):
        return "llamafactory"
    if name == "tune":
        return "torchtune"
    if name == "megatron":
        return "swift"
    if name.startswith("mlx_lm"):
        return "mlx-lm"
    if name in ("accelerate-launch",):
        return "accelerate-launch"
    return "python" if re.fullmatch(r"python[\d.]*|ipython", name) else None


def _started(kind: str, command: Command, words: list[Word], wrapper: str) -> Launch | None:
    head, rest = words[0], words[1:]
    verb = rest[0].text if rest else None
    match kind:
        case "accelerate":
            return _processes("accelerate", command, head, rest[1:], wrapper) if verb == "launch" else None
        case "accelerate-launch":
            return _processes("accelerate", command, head, rest, wrapper)
        case "torchrun" | "deepspeed" | "composer":
            return _processes(kind, command, head, rest, wrapper)
        case "llamafactory" | "axolotl":
            if verb != "train":
                return None
            return _trainer(kind, command, head, rest[1:], wrapper)
        case "trl":
            known = verb in ("sft", "dpo", "kto", "grpo", "reward", "rloo", "orpo")
            return _trainer("trl", command, head, rest, wrapper) if known else None
        case "swift":
            return _trainer("swift", command, head, rest, wrapper) if verb in ("sft", "pt", "rlhf") else None
        case "litgpt":
            trains = (verb or "").startswith(("finetune", "pretrain"))
            return _trainer("litgpt", command, head, rest, wrapper) if trains else None
        case "oumi":
            verbs = [word.text for word in rest]
            if "train" not in verbs or verb not in ("train", "distributed"):
                return None
            return _trainer("oumi", command, head, rest[verbs.index("train") + 1 :], wrapper)
        case "torchtune":
            return _trainer("torchtune", command, head, rest[1:], wrapper) if verb == "run" else None
        case "mlx-lm":
            if head.text is not None and not head.text.endswith("lora"):
                if verb != "lora":
                    return None
                rest = rest[1:]
            return _trainer("mlx-lm", command, head, rest, wrapper)
    return _python(command, head, rest, wrapper)


def _processes(launcher: Launcher, command: Command, head: Word, rest: list[Word], wrapper: str) -> Launch:
    """A launcher of processes: its options, then a program or a module, then that one's arguments."""
    own, _, at = options(rest, BARE[launcher])
    module = "m" in own or "module" in own
    program = rest[at] if at < len(rest) else None
    arguments, positional, _ = options(rest[at + 1 :])
    named = MODULES.get(program.text or "") if program is not None and module else None
    started = Launch(launcher, command, head, own, program, module, arguments, tuple(positional), wrapper)
    if named is not None and positional and positional[0].text == "train":
        return Launch(launcher, command, head, own, program, module, arguments, tuple(positional[1:]), wrapper)
    return started


def _trainer(launcher: Launcher, command: Command, head: Word, rest: list[Word], wrapper: str) -> Launch:
    """A trainer's own command. torchtune's options come before the recipe, as torchrun's do."""
    if launcher == "torchtune":
        own, _, at = options(rest, BARE["torchrun"])
        program = rest[at] if at < len(rest) else None
        arguments, positional, _ = options(rest[at + 1 :])
        return Launch(launcher, command, head, own, program, True, arguments, tuple(positional), wrapper)
    arguments, positional, _ = options(rest)
    return Launch(launcher, command, head, {}, None, False, arguments, tuple(positional), wrapper)


def _python(command: Command, head: Word, rest: list[Word], wrapper: str) -> Launch | None:
    at = 0
    module = False
    while at < len(rest):
        text = rest[at].text or ""
        if text == "-m":
            module, at = True, at + 1
            break
        if not text.startswith("-") or text in ("-", "-c"):
            break
        at += 2 if text in ("-W", "-X") else 1
    if at >= len(rest) or rest[at].text in ("-", "-c"):
        return None
    program, after = rest[at], rest[at + 1 :]
    known = MODULES.get(program.text or "") if module else None
    match known:
        case "accelerate" | "torchrun" | "deepspeed":
            return _processes(known, command, head, after, wrapper)
        case "axolotl" | "llamafactory" | "mlx-lm":
            verbs = ("train", "lora")
            after = after[1:] if after and after[0].text in verbs else after
            return _trainer(known, command, head, after, wrapper)
    if not module and program.text is not None and not program.text.endswith(".py"):
        return None
    arguments, positional, _ = options(after)
    return Launch("python", command, head, {}, program, module, arguments, tuple(positional), wrapper)


def launches(commands: Sequence[Command]) -> Iterator[Launch]:
    """The launches among commands, in order."""
    for command in commands:
        found = launch(command)
        if found is not None:
            yield found
