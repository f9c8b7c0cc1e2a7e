"""PEFT's adapter_config.json."""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node, Scalar
from trainlint.formats.format import Format
from trainlint.formats.fragment import Fragment, say
from trainlint.formats.reading import fragment_of

NAME = "peft-adapter"
KINDS = {
    "LORA": "lora",
    "ADALORA": "adalora",
    "IA3": "ia3",
    "LOHA": "loha",
    "LOKR": "lokr",
    "OFT": "oft",
    "VERA": "vera",
}
SECTIONS = {
    "LORA": "LoraConfig",
    "ADALORA": "AdaLoraConfig",
    "IA3": "IA3Config",
    "LOHA": "LoHaConfig",
    "LOKR": "LoKrConfig",
    "OFT": "OFTConfig",
    "BOFT": "BOFTConfig",
    "VERA": "VeraConfig",
    "PREFIX_TUNING": "PrefixTuningConfig",
    "PROMPT_TUNING": "PromptTuningConfig",
    "P_TUNING": "PromptEncoderConfig",
}
"""`peft_type` → the class whose history its keys belong to."""


def recognise(document: Document, root: Node | None) -> int:
    """An object with a `peft_type`, or LoRA's own keys beside `base_model_name_or_path`."""
    if not isinstance(root, Mapping):
        return 0
    names = root.names()
    if isinstance(root.get("peft_type"), Scalar):
        return 95 if document.syntax == "json" else 60 if names & {"r", "task_type", "target_modules"} else 0
    told = {"lora_alpha", "lora_dropout", "r", "target_modules", "task_type", "fan_in_fan_out", "inference_mode"}
    return 70 if "base_model_name_or_path" in names and len(names & told) >= 3 and document.syntax == "json" else 0


def read(document: Document, root: Node | None) -> Fragment:
    """Kind, rank, targets and what trains beside; the base model it was made for."""
    fragment = fragment_of(NAME, document, root, framework="peft")
    entry = fragment.entry("peft_type")
    kind = entry.value.value if entry is not None and isinstance(entry.value, Scalar) else None
    if isinstance(kind, str) and entry is not None and isinstance(entry.value, Scalar):
        fragment.section = SECTIONS.get(kind, "")
        word = "dora" if fragment.written("use_dora") is True else KINDS.get(kind, kind.lower())
        fragment.values["adapter.kind"] = say(NAME, "peft_type", entry.value, word)
    return fragment


FORMAT = Format(NAME, "PEFT adapter config", recognise, read, framework="peft", package="peft")
