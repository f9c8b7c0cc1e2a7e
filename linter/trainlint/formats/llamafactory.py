"""LLaMA-Factory: flat YAML of its own keys and those of the Hugging Face Trainer, read by OmegaConf.

Source: LLaMA-Factory 0.7 to 0.9.5, hparams/*.py, model/adapter.py, model/patcher.py; src/llamafactory/v1 for the
layout with `model`, `train_dataset` and `dist_config`.
"""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node, Scalar
from trainlint.formats.format import Format
from trainlint.formats.fragment import Fragment, say
from trainlint.formats.reading import fragment_of, listed, read_marked, truth
from trainlint.formats.semantics import trainer_arguments as arguments
from trainlint.formats.semantics.interpolation import resolved
from trainlint.formats.semantics.llamafactory import complete
from trainlint.run import Value

NAME = "llamafactory"

STAGES = ("pt", "sft", "rm", "ppo", "dpo", "kto", "orpo")
OWN = frozenset(
    (
        "cutoff_len", "dataset_dir", "disable_gradient_checkpointing", "do_predict", "do_train", "export_dir",
        "finetuning_type", "infer_backend", "lora_target", "neat_packing", "plot_loss", "pref_beta", "pref_loss",
        "pure_bf16", "quantization_bit", "template", "use_unsloth_gc",
    )
)  # fmt: skip
TRAINS = frozenset(
    ("learning_rate", "num_train_epochs", "max_steps", "per_device_train_batch_size", "gradient_accumulation_steps")
)
"""Arguments that predictions, exports and chats have no use for."""
MODELS = ("model_name_or_path", "adapter_name_or_path")
V1 = frozenset(("dist_config", "kernel_config", "peft_config", "quant_config", "init_config", "model_class"))
OPTIMIZERS = {
    "use_galore": "galore_adamw",
    "use_apollo": "apollo_adamw",
    "use_adam_mini": "adam_mini",
    "use_muon": "muon",
}
WORDS = {"all": "all-linear"}


def recognise(document: Document, root: Node | None) -> int:
    """`finetuning_type`, a `stage` of its own, or its templates beside what is done with them."""
    if not isinstance(root, Mapping):
        return 0
    names = root.names()
    own = len(names & OWN)
    if not names.isdisjoint(MODELS):
        if "finetuning_type" in names and (own >= 2 or "stage" in names or "dataset" in names):
            return 95
        stage = root.get("stage")
        if isinstance(stage, Scalar) and stage.value in STAGES and own >= 2:
            return 90
        if "cutoff_len" in names and own >= 2:
            return 85
        return 80 if "template" in names and own >= 2 else 45 if _chats(root) else 0
    if isinstance(root.get("model"), Scalar) and "train_dataset" in names and (names & V1 or "cutoff_len" in names):
        return 90
    return 0


def _chats(root: Mapping) -> bool:
    """A model and a template and no more than what a chat needs."""
    return "template" in root and root.names() <= {
        *MODELS,
        "template",
        "trust_remote_code",
        "infer_dtype",
        "do_sample",
    } | {
        "visual_inputs",
        "image_max_pixels",
        "video_max_pixels",
        "flash_attn",
    }


def read(document: Document, root: Node | None) -> Fragment:
    """What the config says. Chats, exports and predictions train nothing."""
    assert isinstance(root, Mapping)
    tree = resolved(root) if "${" in document.text else root
    fragment = fragment_of("hf-trainer", document, tree, framework=NAME)
    fragment.format = NAME
    fragment.values = {path: _own(value) for path, value in fragment.values.items()}
    fragment.values.pop("checkpointing.kind", None)  # the Trainer's flag is not what controls it
    read_marked(fragment, NAME)
    v1 = "train_dataset" in tree
    fragment.launches = v1 or _trains(fragment)
    _method(fragment, v1)
    _targets(fragment, "peft_config.target_modules" if v1 else "lora_target")
    _objective(fragment)
    _optimizer(fragment)
    neat = fragment.value("neat_packing")
    if neat is not None and truth(neat.value):
        fragment.values["length.packing"] = Value(
            True, "written", "neat_packing", neat.place, neat.raw, file_format=NAME
        )
    quantization = fragment.value("quantization_method")
    if (
        quantization is not None
        and quantization.value not in ("bnb", "bitsandbytes")
        and "quantization.bits" in fragment.values
    ):
        fragment.values["quantization.type"] = quantization
    arguments.finish_reading(fragment)
    return fragment


def _trains(fragment: Fragment) -> bool:
    """Whether it is a training: `do_train`, or no word of it and settings that only a training has.

    The library does nothing without `do_train`; people leave it out where they show a config, or set it elsewhere.
    """
    said = truth(fragment.written("do_train"))
    if said is not None:
        return said
    instead = any(truth(fragment.written(key)) is True for key in ("do_predict", "do_eval"))
    return not instead and "export_dir" not in fragment.keys and not TRAINS.isdisjoint(fragment.keys)


def _own(value: Value[object]) -> Value[object]:
    return Value(value.value, value.origin, value.key, value.place, value.raw, value.unit, value.note, NAME)


def _method(fragment: Fragment, v1: bool) -> None:
    key = "peft_config.name" if v1 else "finetuning_type"
    entry = fragment.entry(key)
    if entry is None or not isinstance(entry.value, Scalar):
        return
    quantized = "quantization.bits" in fragment.values
    match entry.value.value:
        case "full":
            fragment.values["method"] = say(NAME, key, entry.value, "full")
        case "freeze":
            fragment.values["method"] = say(NAME, key, entry.value, "freeze")
        case "lora" | "oft":
            fragment.values["method"] = say(NAME, key, entry.value, "qlora" if quantized else "lora")
            kind = say(NAME, key, entry.value, entry.value.value)
            fragment.values.setdefault("adapter.kind", kind)
    layers = fragment.value("freeze_trainable_layers")
    if entry.value.value == "freeze" and layers is not None and isinstance(layers.value, int) and layers.value > 0:
        fragment.values["adapter.layers"] = layers


def _targets(fragment: Fragment, key: str) -> None:
    entry = fragment.entry(key)
    names = listed(entry.value) if entry is not None and not isinstance(entry.value, Mapping) else None
    if names and entry is not None:
        fragment.values["adapter.targets"] = Value(
            tuple(WORDS.get(name, name) for name in names), "written", key, entry.value.place, file_format=NAME
        )


def _objective(fragment: Fragment) -> None:
    loss = fragment.value("pref_loss")
    if fragment.written("stage") == "dpo" and loss is not None and loss.value in ("orpo", "simpo", "ipo"):
        fragment.values["objective"] = loss


def _optimizer(fragment: Fragment) -> None:
    """Layerwise GaLore and APOLLO step inside the backward pass."""
    for key in OPTIMIZERS:
        if truth(fragment.written(key)):
            layerwise = fragment.value(key.replace("use_", "") + "_layerwise")
            if layerwise is not None and truth(layerwise.value):
                fragment.values["optimizer.in_backward"] = Value(
                    True, "written", layerwise.key, layerwise.place, layerwise.raw, file_format=NAME
                )


FORMAT = Format(
    name=NAME,
    title="LLaMA-Factory config",
    recognise=recognise,
    read=read,
    complete=complete,
    framework=NAME,
    package=NAME,
)
