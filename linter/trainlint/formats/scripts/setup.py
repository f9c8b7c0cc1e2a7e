"""Which calls of a script belong together: trainer, config, the model that is trained, adapter, quantization.

Where several calls may be meant, only what they agree on counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainlint.documents import Entry, Mapping, Place, Scalar, plain
from trainlint.formats.scripts.calls import Call, Script
from trainlint.formats.scripts.training_names import CONFIGS, OPTIMIZERS, TRAINERS

_MODEL = re.compile(r"Model|For[A-Z]|LMHead|LLM$|SentenceTransformer")
_OTHER = re.compile(r"Tokenizer|Processor|Config|Extractor|Peft|Pipeline")
_LIGHTNING = ("lightning", "pytorch_lightning", "pl.", "L.")
ADAPTERS = ("LoraConfig", "AdaLoraConfig", "IA3Config")
PREPARES = ("prepare_model_for_kbit_training", "prepare_model_for_int8_training")


@dataclass(frozen=True, slots=True)
class Setup:
    """The calls that make up the training. A group is empty where nothing of its kind is called.

    `adapter`: whether an adapter is trained (None: only a run decides), `prepared` the same for the preparation of a
    quantized base, `frozen` whether parameters are frozen by hand. `parsed`: the trainer's config comes from a command
    line or a file.
    """

    trainer: Call | None
    config: Call | None
    loads: tuple[Call, ...]
    quantization: tuple[Call, ...]
    adapters: tuple[Call, ...]
    unsloth: tuple[Call, ...]
    accelerators: tuple[Call, ...]
    lightning: tuple[Call, ...]
    optimizers: tuple[Call, ...]
    loaders: tuple[Call, ...]
    adapter: bool | None
    prepared: bool | None
    parsed: bool
    quantizes: bool | None
    frozen: bool


def setup(script: Script) -> Setup:
    """Find the calls and how they hang together."""
    trainers = [
        call for call in script.calls if short(script, call) in TRAINERS and not call.name.startswith(_LIGHTNING)
    ]
    trainers = [call for call in trainers if call.sources or call.positional]
    trainer = trainers[0] if trainers else None
    unsloth = [call for call in script.named("get_peft_model") if _last(call.receiver).startswith("Fast")]
    loads = _loads(script, trainer)
    adapter, adapters = _adapter(script, trainer, bool(unsloth))
    quantizes, quantization = _quantization(script, loads)
    prepared = _certain(script.named(*PREPARES))
    return Setup(
        trainer,
        _config(script, trainer),
        loads,
        quantization,
        adapters,
        tuple(unsloth),
        tuple(script.named("Accelerator")),
        tuple(call for call in script.named("Trainer") if call.name.startswith(_LIGHTNING)),
        tuple(call for call in script.calls if call.short in OPTIMIZERS and call.positional),
        _train_loaders(script),
        adapter,
        prepared,
        bool(script.named("parse_args_into_dataclasses", "parse_args_and_config", "TrlParser", "parse_dict")),
        quantizes,
        _freezes(script),
    )


def short(script: Script, call: Call) -> str:
    """A call's class through the file's own subclasses, without its module."""
    return script.origin(call.name).rpartition(".")[2]


def merged(calls: Sequence[Call]) -> tuple[Mapping, frozenset[str]]:
    """The keywords that all calls give the same value, and the names of those they do not."""
    first = calls[0]
    if len(calls) == 1:
        return first.keywords, first.unknown
    unknown = set[str]().union(*(call.unknown for call in calls))
    for call in calls[1:]:
        for name in {*call.keywords.names(), *first.keywords.names()}:
            if name not in unknown and _plain(first, name) != _plain(call, name):
                unknown.add(name)
    entries = tuple(entry for entry in first.keywords.entries if entry.name not in unknown)
    return Mapping(entries, first.place), frozenset(unknown)


def with_id(mapping: Mapping, calls: Sequence[Call]) -> Mapping:
    """The keywords of a load with the model's id, which mostly stands without a name."""
    ids = {
        node.value: node
        for call in calls
        for node in (call.positional[0] if call.positional else None, *_named_ids(call))
        if isinstance(node, Scalar) and isinstance(node.value, str)
    }
    if len(ids) != 1 or not all(call.positional or _named_ids(call) for call in calls):
        return mapping
    (node,) = ids.values()
    written = "model_name" if any("model_name" in call.keywords for call in calls) else ""
    name = Scalar("pretrained_model_name_or_path", written, node.place)
    entries = tuple(
        entry for entry in mapping.entries if entry.name not in ("pretrained_model_name_or_path", "model_name")
    )
    return Mapping((Entry(name, node), *entries), mapping.place)


def _named_ids(call: Call) -> list[Scalar]:
    nodes = [call.keywords.get(name) for name in ("pretrained_model_name_or_path", "model_name")]
    return [node for node in nodes if isinstance(node, Scalar)]


def _plain(call: Call, name: str) -> object:
    return plain(call.keywords.get(name)) if name in call.keywords else "\0absent"


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _inside(inner: Place, outer: Place) -> bool:
    return outer[1:3] <= inner[1:3] and inner[3:5] <= outer[3:5]


def _argument(script: Script, outer: Call, name: str, candidates: Iterable[Call]) -> list[Call]:
    """The calls among some that an argument of another call means: bound to its name, or written in its place."""
    source = outer.sources.get(name, outer.first if name == "model" else None)
    if not source:
        return []
    return [
        call for call in candidates if call.target == source or (call.target == "" and _inside(call.place, outer.place))
    ]


def _config(script: Script, trainer: Call | None) -> Call | None:
    candidates = [call for call in script.calls if short(script, call) in CONFIGS]
    if trainer is not None:
        meant = _argument(script, trainer, "args", candidates)
        if meant:
            return meant[0] if len(meant) == 1 else None
    return candidates[0] if len(candidates) == 1 else None


def _loads(script: Script, trainer: Call | None) -> tuple[Call, ...]:
    loads = [call for call in script.named("from_pretrained") if _is_model(call)]
    if trainer is not None:
        meant = _argument(script, trainer, "model", loads)
        if meant:
            return tuple(meant)
    bound = [call for call in loads if _last(call.target) in ("model", "policy", "base_model", "llm")]
    if bound:
        return tuple(call for call in bound if call.target == bound[0].target)
    return tuple(loads) if len(loads) == 1 else ()


def _is_model(call: Call) -> bool:
    name = _last(call.receiver)
    return bool(_MODEL.search(name)) and not _OTHER.search(name)


def _certain(calls: Sequence[Call]) -> bool | None:
    """Whether one of some calls is surely made: None where each stands under a condition."""
    if not calls:
        return False
    return True if any(not call.conditional for call in calls) else None


def _adapter(script: Script, trainer: Call | None, unsloth: bool) -> tuple[bool | None, tuple[Call, ...]]:
    configs = script.named(*ADAPTERS)
    wraps = [call for call in script.named("get_peft_model") if not _last(call.receiver).startswith("Fast")]
    loaded = [call for call in script.named("from_pretrained") if "PeftModel" in _last(call.receiver)]
    used = True if unsloth else _certain([*wraps, *loaded])
    source = trainer.sources.get("peft_config") if trainer is not None else None
    if source is not None and source != "None":
        meant = [call for call in configs if call.target == source]
        written = trainer is not None and any(_inside(call.place, trainer.place) for call in configs)
        certain = written or (bool(meant) and all(not call.conditional for call in meant))
        used = True if certain and " if " not in source else used or None
    elif not used and script.named("add_adapter"):
        used = None
    return used, tuple(configs) if used else ()


def _quantization(script: Script, loads: Sequence[Call]) -> tuple[bool | None, tuple[Call, ...]]:
    """Whether the model is loaded with a BitsAndBytesConfig, and which."""
    configs = script.named("BitsAndBytesConfig")
    given = [call for call in loads if "quantization_config" in call.sources]
    if not given:
        return (None if configs and any(call.open for call in loads) else False), ()
    if len(given) < len(loads) or any(call.conditional for call in given):
        return None, ()
    meant = _argument(script, given[0], "quantization_config", configs)
    if not meant or any(call.conditional for call in meant):
        return None, ()
    return True, tuple(meant)


def _freezes(script: Script) -> bool:
    by_hand = any(one.target.endswith(".requires_grad") and one.source == "False" for one in script.assignments)
    calls = script.named("requires_grad_")
    return by_hand or any("False" in (call.first, call.sources.get("requires_grad")) for call in calls)


def _train_loaders(script: Script) -> tuple[Call, ...]:
    loaders = script.named("DataLoader")
    train = [call for call in loaders if "train" in call.target.lower()]
    shuffled = [call for call in loaders if call.sources.get("shuffle") == "True"]
    return tuple(train or shuffled or (loaders if len(loaders) == 1 else ()))
