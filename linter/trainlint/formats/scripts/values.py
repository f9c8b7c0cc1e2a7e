"""What the calls of a training script say of a run, as values with the place of each keyword's value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainlint.documents import Document, Entry, Mapping, Node, Scalar
from trainlint.formats import hf_trainer, trl
from trainlint.formats.fragment import Fragment, Reference, say
from trainlint.formats.reading import convert, marked
from trainlint.formats.scripts.amp import Amp
from trainlint.formats.scripts.calls import Call, Script
from trainlint.formats.scripts.setup import Setup, merged, short, with_id
from trainlint.formats.scripts.training_names import CONFIGS
from trainlint.formats.semantics import trl as trl_defaults
from trainlint.run import Value

NAME = "python-script"
PLAIN = ("", "TrainingArguments", "Seq2SeqTrainingArguments", "SentenceTransformerTrainingArguments")
"""Configs of the Trainer itself; the others are TRL's."""
SPREAD = frozenset(("auto", "balanced", "balanced_low_0", "sequential"))
"""Words of `device_map` that spread the layers over the devices."""
NAMES = {
    "AdamW": "adamw_torch",
    "SGD": "sgd",
    "RMSprop": "rmsprop",
    "Adagrad": "adagrad",
    "Adafactor": "adafactor",
    "AdamW8bit": "adamw_bnb_8bit",
    "PagedAdamW": "paged_adamw_32bit",
    "PagedAdamW32bit": "paged_adamw_32bit",
    "PagedAdamW8bit": "paged_adamw_8bit",
    "Lion8bit": "lion_8bit",
    "PagedLion8bit": "paged_lion_8bit",
}
"""Optimizer classes → Hugging Face `optim` names."""


def fragment_of_script(document: Document, script: Script, made: Setup) -> Fragment:
    """The fragment of a script: the config's keywords as keys, the values of all calls.

    `facts["unknown"]` holds the paths of keywords whose value only a run decides.
    """
    fragment = _config(document, script, made)
    unknown: set[str] = set()
    if made.config is not None:
        marks = {**marked("hf-trainer"), **marked("trl")}
        unknown.update(marks[name].path for name in made.config.unknown if name in marks)
    if made.trainer is not None and short(script, made.trainer) == "SFTTrainer":
        _section(fragment, "SFTTrainer", (made.trainer,), unknown)
    given = made.config.keywords.get("model_init_kwargs") if made.config is not None else None
    if isinstance(given, Mapping):
        _read(fragment, "from_pretrained", given)
    _section(fragment, "from_pretrained", made.loads, unknown)
    _device_map(fragment, made.loads)
    _section(fragment, "BitsAndBytesConfig", made.quantization, unknown)
    _section(fragment, "LoraConfig", made.adapters, unknown)
    _section(fragment, "FastModel", made.unsloth, unknown)
    _section(fragment, "Accelerator", made.accelerators, unknown)
    _section(fragment, "LightningTrainer", made.lightning, unknown)
    if made.trainer is None:
        _section(fragment, "Optimizer", made.optimizers, unknown)
        _section(fragment, "DataLoader", made.loaders, unknown)
        _optimizer(fragment, made.optimizers)
    elif made.trainer.sources.get("optimizers", "").startswith("("):
        unknown.add("optimizer.name")
    if made.trainer is not None:
        _trained(fragment, made.trainer)
    if made.quantizes is None:
        unknown.add("quantization.bits")
    if made.prepared:
        _flag(fragment, "quantization.prepared", script.named("prepare_model_for_kbit_training"))
    enables = [call for call in script.named("gradient_checkpointing_enable") if not call.conditional]
    if enables and "checkpointing.kind" not in fragment.values:
        fragment.values["checkpointing.kind"] = _said(enables[0], "gradient_checkpointing_enable", "full")
    elif script.named("gradient_checkpointing_enable") and made.config is None:
        unknown.add("checkpointing.kind")
    if made.unsloth or any("Fast" in call.receiver for call in made.loads):
        fragment.values.setdefault("kernels", _said((*made.unsloth, *made.loads)[0], "unsloth", "unsloth"))
    if made.adapter is None:
        for path in [path for path in fragment.values if path.startswith("adapter.")]:
            del fragment.values[path]
    fragment.facts["arguments"] = _arguments(fragment, script, made)
    fragment.facts["unknown"] = frozenset(path for path in unknown if path and path not in fragment.values)
    return fragment


def trainer_of(script: Script, made: Setup, amp: Amp) -> str:
    """Who trains: transformers, trl, lightning, accelerate, torch; empty where nothing does."""
    if made.trainer is not None or made.config is not None:
        names = [short(script, call) for call in (made.trainer, made.config) if call is not None]
        plain = all(name in (*PLAIN, "Trainer", "Seq2SeqTrainer", "SentenceTransformerTrainer") for name in names)
        return "transformers" if plain else "trl"
    if made.lightning:
        return "lightning"
    if amp.of("accelerator-backward") or (made.accelerators and amp.of("backward", "step")):
        return "accelerate"
    backward = amp.of("backward", "scaled-backward", "engine-backward", "manual-backward")
    return "torch" if backward and (amp.of("step", "scaler-step") or made.optimizers or amp.of("scaler")) else ""


def _config(document: Document, script: Script, made: Setup) -> Fragment:
    """The trainer's config as its own format reads it: keywords are keys."""
    if made.config is None:
        return _parsed(document, script)
    name = short(script, made.config)
    read = hf_trainer.read if name in PLAIN else trl.read
    own = _defaults(script, made.config.short)
    keywords = made.config.keywords
    if own is not None:
        given = frozenset(made.config.sources)
        rest = tuple(entry for entry in own.entries if entry.name not in given)
        keywords = Mapping((*rest, *keywords.entries), keywords.place)
    fragment = read(document, keywords)
    fragment.format = NAME
    fragment.section = "TrainingArguments" if name in PLAIN else name
    fragment.values = {path: replace(value, file_format=NAME) for path, value in fragment.values.items()}
    objective = name.removesuffix("Config").lower()
    if objective in trl_defaults.SECTIONS:
        fragment.facts["objective"] = objective
    return fragment


def _parsed(document: Document, script: Script) -> Fragment:
    """A config that a parser fills: what an own subclass of a trainer's config has for defaults."""
    fragment = Fragment(NAME, document)
    for name in script.arguments.parsed:
        origin = script.origin(name).rpartition(".")[2]
        own = _defaults(script, name) if origin in CONFIGS else None
        if own is not None:
            read = (hf_trainer.read if origin in PLAIN else trl.read)(document, own)
            fragment.values.update(
                {path: replace(value, file_format=NAME) for path, value in read.values.items() if value.written}
            )
    return fragment


def _defaults(script: Script, name: str) -> Mapping | None:
    """The fields of an own subclass of a trainer's config, as keywords that are given."""
    fields = script.arguments.classes.get(name)
    if not fields:
        return None
    entries = []
    for key, default in fields.items():
        node = script.followed.node(default)
        if node is not None and not (isinstance(node, Scalar) and node.value is None):
            entries.append(Entry(Scalar(key, key, node.place), node))
    return Mapping(tuple(entries), entries[0].value.place) if entries else None


def _arguments(fragment: Fragment, script: Script, made: Setup) -> dict[str, tuple[str, bool | None]]:
    """Paths whose value is an argument of the script itself → the argument's name, and the default of a switch.

    Where more than the argument itself is written, the name is empty: given another value, the path is not known.
    """
    found: dict[str, tuple[str, bool | None]] = {}
    groups = {
        "": (made.config,),
        "from_pretrained": made.loads,
        "BitsAndBytesConfig": made.quantization,
        "LoraConfig": made.adapters,
        "FastModel": made.unsloth,
        "Accelerator": made.accelerators,
        "Optimizer": () if made.trainer is not None else made.optimizers,
        "DataLoader": () if made.trainer is not None else made.loaders,
    }
    marks = {**marked("hf-trainer"), **marked("trl")}
    for section, calls in groups.items():
        keys = (
            marks
            if not section
            else {
                dotted.partition(".")[2]: key
                for dotted, key in marked(NAME).items()
                if dotted.startswith(f"{section}.")
            }
        )
        for call in calls:
            sources = dict(call.sources) if call is not None else {}
            if section == "from_pretrained" and call is not None and call.first:
                sources["pretrained_model_name_or_path"] = call.first
            for keyword, source in sources.items():
                names = script.arguments.named(source)
                path = keys[keyword].path if keyword in keys else ""
                if names and path:
                    alone = (
                        len(names) == 1 and source.endswith(f".{names[0]}") and source.replace(".", "_").isidentifier()
                    )
                    found[path] = (names[0], script.arguments.switch(source)) if alone else ("", None)
    return found


def _section(fragment: Fragment, section: str, calls: Sequence[Call], unknown: set[str]) -> None:
    """The values of a group of calls by its section of the schema; what is there already wins."""
    if not calls:
        return
    keywords, undecided = merged(calls)
    if section == "from_pretrained":
        keywords = with_id(keywords, calls)
    for dotted, key in marked(NAME).items():
        if dotted.startswith(f"{section}.") and dotted.partition(".")[2] in undecided:
            unknown.add(key.path)
    _read(fragment, section, keywords)
    if any(call.open for call in calls):
        unknown.update(key.path for dotted, key in marked(NAME).items() if dotted.startswith(f"{section}."))


def _read(fragment: Fragment, section: str, keywords: Mapping) -> None:
    for dotted, key in marked(NAME).items():
        group, _, name = dotted.partition(".")
        entry = keywords.entry(name) if group == section else None
        if entry is None:
            continue
        value = convert(NAME, entry.key.raw or name, entry.value, key)
        if value is not None:
            fragment.values.setdefault(key.path, value)
        if key.role == "model" and isinstance(entry.value, Scalar) and isinstance(entry.value.value, str):
            fragment.references.append(Reference("model", entry.value.value, entry.value.place, name))


def _device_map(fragment: Fragment, loads: Sequence[Call]) -> None:
    nodes = {call.keywords.get("device_map") for call in loads}
    node: Node | None = nodes.pop() if len(nodes) == 1 else None
    if isinstance(node, Scalar) and node.value in SPREAD:
        fragment.values["sharding.kind"] = say(NAME, "device_map", node, "device-map")
    elif isinstance(node, Mapping):
        places = {entry.value.value for entry in node.entries if isinstance(entry.value, Scalar)}
        if len(places) > 1:
            fragment.values["sharding.kind"] = Value(
                "device-map", "written", "device_map", node.place, file_format=NAME
            )


def _trained(fragment: Fragment, trainer: Call) -> None:
    """A model that is given to the trainer by its id."""
    node = trainer.keywords.get("model")
    if isinstance(node, Scalar) and isinstance(node.value, str):
        fragment.values.setdefault("model.id", say(NAME, "model", node, node.value))
        fragment.references.append(Reference("model", node.value, node.place, "model"))


def _optimizer(fragment: Fragment, calls: Sequence[Call]) -> None:
    name = NAMES.get(calls[0].short) if len({call.short for call in calls}) == 1 else None
    if name is not None:
        fused = name == "adamw_torch" and all(call.sources.get("fused") == "True" for call in calls)
        fragment.values["optimizer.name"] = _said(calls[0], calls[0].short, "adamw_torch_fused" if fused else name)


def _flag(fragment: Fragment, path: str, calls: Sequence[Call]) -> None:
    if calls:
        fragment.values[path] = _said(calls[0], calls[0].short, True)


def _said(call: Call, key: str, value: object) -> Value[object]:
    return Value(value, "written", key, call.place, call.short, file_format=NAME)
