"""Arguments of a script on the Hugging Face Trainer: a YAML or JSON that HfArgumentParser reads."""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment
from trainlint.formats.reading import read_marked
from trainlint.formats.semantics import trainer_arguments as arguments

NAME = "hf-trainer"
SIBLINGS = frozenset(
    (
        # LLaMA-Factory
        "finetuning_type", "cutoff_len", "stage", "template", "dataset_dir", "quantization_bit", "lora_target",
        "base_model", "micro_batch_size", "sequence_len",  # Axolotl
        "tuner_type", "train_type", "sft_type", "rlhf_type", "swift_version",  # ms-swift
        "lora_parameters", "iters",  # MLX-LM
        "actor_rollout_ref", "_component_", "_target_", "apiVersion", "trainlint", "compute_environment",
        "zero_optimization", "train_micro_batch_size_per_gpu", "peft_type",
    )
)  # fmt: skip
"""Keys of other frameworks whose configs hold some of the Trainer's arguments too."""
SIGN = "per_device_train_batch_size"
"""A name that no other trainer has: beside it, a file of arguments alone needs no model."""
MODEL = frozenset(("model_name_or_path", "model_id", "model_name", "base_model_name_or_path", "config_name"))


def certainty(document: Document, root: Node | None, least: int = 3) -> int:
    """How sure it is that a mapping holds TrainingArguments, TRL's among them; 0 with fewer than `least` of them."""
    if document.syntax not in ("yaml", "json") or not isinstance(root, Mapping):
        return 0
    outer = root.names()
    if outer & SIBLINGS:
        return 0
    root = arguments.flattened(root)
    names = root.names()
    if names & SIBLINGS:
        return 0
    known = arguments.count(root)
    if ("model" in names and not names & MODEL) or known < least:
        return 0
    named = bool(names & MODEL) or (known == len(names) and SIGN in names)
    if not named and (known < 5 or not names & {"output_dir", "per_device_train_batch_size", "num_train_epochs"}):
        return 0
    if 2 * known < len(names) - 20 and not named:
        return 0
    return min(50 + 3 * known, 85)


def recognise(document: Document, root: Node | None) -> int:
    """Several TrainingArguments and a model, and no other framework's keys."""
    return certainty(document, root)


def read(document: Document, root: Node | None) -> Fragment:
    """The arguments; adapter keys count unless the script's switch is off."""
    flat = arguments.flattened(root) if isinstance(root, Mapping) else None
    fragment = Fragment(NAME, document, flat, framework="transformers", section="TrainingArguments", launches=True)
    read_marked(fragment, NAME)
    switches = [arguments.says(fragment, name) for name in ("use_peft", "use_lora", "use_peft_lora")]
    if False in switches and True not in switches:
        for path in [path for path in fragment.values if path.startswith("adapter.")]:
            del fragment.values[path]
    fragment.facts["adapter"] = True in switches
    arguments.finish_reading(fragment)
    return fragment


def complete(draft: Draft) -> None:
    """The Trainer's defaults; a script's own adapter and quantization settings as far as they are written."""
    fragment = draft.fragments[0]
    bits = draft.get("quantization.bits")
    if fragment.facts.get("adapter"):
        draft.derive("method", "qlora" if bits is not None else "lora", "the script's adapter switch")
    if bits == 4:
        draft.put("quantization.type", "nf4", "assumed", "most scripts quantize to nf4")
        draft.default("quantization.storage", "uint8", "transformers")
    elif bits == 8:
        draft.derive("quantization.type", "int8", "8 bit")
    arguments.complete(draft, fragment)


FORMAT = Format(NAME, "Hugging Face Trainer arguments", recognise, read, complete, "transformers", "transformers")
