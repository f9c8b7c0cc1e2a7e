"""Arguments of a TRL script (SFT, DPO, KTO, ORPO, GRPO, reward, …), recipes in its style among them."""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node, Scalar
from trainlint.formats import hf_trainer
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment
from trainlint.formats.reading import read_marked
from trainlint.formats.semantics import trainer_arguments as arguments
from trainlint.formats.semantics import trl as trl_defaults
from trainlint.formats.semantics.release import companion

NAME = "trl"
OWN = frozenset(
    (
        "use_peft", "lora_target_modules", "lora_task_type", "use_bnb_nested_quant", "packing", "eval_packing",
        "packing_strategy", "padding_free", "dataset_text_field", "dataset_mixer", "dataset_mixture", "dataset_kwargs",
        "dataset_num_proc", "dataset_train_split", "dataset_test_split", "assistant_only_loss", "completion_only_loss",
        "activation_offloading", "max_prompt_length", "max_completion_length", "num_generations", "reward_funcs",
        "use_vllm", "vllm_mode", "vllm_gpu_memory_utilization", "precompute_ref_log_probs", "loss_type", "beta",
        "simpo_gamma", "gamma_beta_ratio", "desirable_weight", "undesirable_weight", "center_rewards_coefficient",
        "reward_model_path", "missing_eos_penalty", "response_length", "dataset_splits", "dataset_mixer_list",
        "max_target_length", "rpo_alpha", "ref_model_mixup_alpha", "sync_ref_model",
    )
)  # fmt: skip
"""Names of TRL's own configs and of recipes in its style."""
ASKED = frozenset(("model_name_or_path", "dataset_name"))
"""What TRL's scripts are told besides the trainer's arguments: with both, fewer of those will do."""


def recognise(document: Document, root: Node | None) -> int:
    """The Trainer's arguments with TRL's beside them."""
    if not isinstance(root, Mapping):
        return 0
    names = arguments.flattened(root).names()
    sure = hf_trainer.certainty(document, root, 2 if names >= ASKED else 3)
    return sure + 10 if sure and names & OWN else 0


def read(document: Document, root: Node | None) -> Fragment:
    """The arguments, the section of TRL's history by objective; adapter keys count only with `use_peft`."""
    flat = arguments.flattened(root) if isinstance(root, Mapping) else None
    fragment = Fragment(NAME, document, flat, framework=NAME, launches=True)
    read_marked(fragment, hf_trainer.NAME)
    read_marked(fragment, NAME)
    used = next(
        (flag for flag in (arguments.says(fragment, name) for name in ("use_peft", "use_lora")) if flag is not None),
        None,
    )
    if used is False:
        for path in [path for path in fragment.values if path.startswith("adapter.")]:
            del fragment.values[path]
    fragment.facts["adapter"] = used
    objective = trl_defaults.objective(fragment)
    if objective is not None:
        fragment.facts["objective"] = objective
        fragment.section = trl_defaults.SECTIONS.get(objective, "")
    entry = fragment.entry("max_length") or fragment.entry("max_seq_length")
    if entry is not None and isinstance(entry.value, Scalar) and entry.value.value is None:
        fragment.facts["unlimited"] = True
    arguments.finish_reading(fragment)
    return fragment


def complete(draft: Draft) -> None:
    """TRL's defaults by release, then the Trainer's."""
    fragment = draft.fragments[0]
    if fragment.facts.get("own_loop"):
        _own_loop(draft, fragment)
        return
    companion(draft, NAME)
    trl_defaults.complete(draft, fragment)
    arguments.complete(draft, fragment)


def _own_loop(draft: Draft, fragment: Fragment) -> None:
    """A recipe whose script runs its own loop: only what its arguments say outright."""
    arguments.batch_defaults(draft)
    objective = fragment.facts.get("objective")
    if objective is not None:
        draft.derive("objective", objective, "the arguments")
    adapted = fragment.facts.get("adapter")
    draft.put("method", "lora" if adapted else "full", "derived" if adapted is not None else "assumed", "`use_lora`")


FORMAT = Format(NAME, "TRL arguments", recognise, read, complete, "trl", "trl")
