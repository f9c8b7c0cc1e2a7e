"""What TRL makes of its arguments: the objective, defaults by release, losses, reference models.

Sources: TRL 0.7.11-1.16.0 trainer/*_config.py, model_config.py, sft_trainer.py, dpo_trainer.py, trainer/utils.py.
"""

from __future__ import annotations

from trainlint.formats.format import Draft
from trainlint.formats.fragment import Fragment
from trainlint.formats.semantics import peft
from trainlint.formats.semantics.release import by_release, release
from trainlint.formats.semantics.trainer_precision import load_dtype

SECTIONS = {
    "sft": "SFTConfig",
    "dpo": "DPOConfig",
    "kto": "KTOConfig",
    "orpo": "ORPOConfig",
    "cpo": "CPOConfig",
    "simpo": "CPOConfig",
    "grpo": "GRPOConfig",
    "rloo": "RLOOConfig",
    "reward": "RewardConfig",
    "ppo": "PPOConfig",
}
"""The config class of each objective."""

TELLING: tuple[tuple[str, frozenset[str]], ...] = (
    ("grpo", frozenset(("num_generations", "reward_funcs", "reward_weights", "epsilon_high", "scale_rewards"))),
    ("ppo", frozenset(("reward_model_path", "num_ppo_epochs", "missing_eos_penalty", "whiten_rewards"))),
    ("simpo", frozenset(("simpo_gamma", "gamma_beta_ratio"))),
    ("kto", frozenset(("desirable_weight", "undesirable_weight"))),
    ("reward", frozenset(("center_rewards_coefficient",))),
    ("dpo", frozenset(("precompute_ref_log_probs", "reference_free", "rpo_alpha", "use_weighting", "ld_alpha",
                       "f_divergence_type", "precompute_ref_batch_size", "ref_model_init_kwargs"))),
    ("sft", frozenset(("packing", "dataset_text_field", "max_seq_length", "assistant_only_loss", "dataset_kwargs",
                       "completion_only_loss", "eval_packing", "packing_strategy", "neftune_noise_alpha"))),
)  # fmt: skip
"""Arguments that only one objective has, the first match wins."""
LOSSES = {
    "simpo": "simpo",
    "kto": "kto",
    "apo_zero_unpaired": "kto",
    "nll": "sft",
    "dft": "sft",
    "chunked_nll": "sft",
    "dapo": "grpo",
    "bnpo": "grpo",
    "dr_grpo": "grpo",
    **dict.fromkeys(("sigmoid", "hinge", "ipo", "apo_zero", "apo_down", "robust", "exo_pair", "nca_pair"), "dpo"),
}
"""`loss_type` → objective."""
RATES = {"sft": 2e-5, "reward": 1e-4}
NO_REFERENCE = ("sft", "orpo", "simpo", "cpo", "reward")


def objective(fragment: Fragment) -> str | None:
    """What is trained for, by the arguments that only one trainer has; None where several have all of them."""
    names = fragment.root.names() if fragment.root is not None else frozenset()
    for word, telling in TELLING[:-1]:
        if names & telling:
            return word
    loss = fragment.written("loss_type")
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]
    if "beta" in names or "max_prompt_length" in names:
        return None
    return "sft" if names & TELLING[-1][1] else None


def complete(draft: Draft, fragment: Fragment) -> None:
    """TRL's own defaults; those of TrainingArguments come after."""
    draft.derive("framework", "trl", "the arguments")
    if fragment.facts.get("objective"):
        draft.derive("objective", fragment.facts["objective"], "the arguments that only it has")
    elif "beta" in fragment.keys:
        options = ("dpo", "orpo", "kto", "cpo")
        draft.either("objective", *((word, f"trained by {SECTIONS[word]}") for word in options), origin="derived")
    goal = draft.get("objective")
    if draft.get("precision.fp16") is not True:
        by_release(draft, "precision.bf16", "trl", ("", False), ("0.19", True))
    by_release(draft, "checkpointing.kind", "trl", ("", "none"), ("0.22", "full"))
    if release(draft.versions, "trl").since("0.27"):
        draft.default("checkpointing.reentrant", False, "trl >=0.27")
    if isinstance(goal, str):
        draft.default("optimizer.lr", RATES.get(goal, 1e-6), "trl")
    _model(draft, fragment)
    _length(draft, fragment, goal)
    _loss(draft, fragment, goal)
    _reference(draft, fragment, goal)


def _model(draft: Draft, fragment: Fragment) -> None:
    """Method, adapter, quantization and load dtype as ModelConfig and the trainers set them up."""
    peft.checkpoint_quantization(draft)
    bits = draft.get("quantization.bits")
    used = fragment.facts.get("adapter")
    if used or (used is None and draft.fragment("peft-adapter") is not None):
        draft.derive("method", "qlora" if bits is not None else "lora", "`use_peft`")
    elif used is None and any(path.startswith("adapter.") for path in fragment.values):
        draft.either("method", ("full", "trl: `use_peft` is off"), ("lora", "a script of one's own"), origin="derived")
    elif not fragment.facts.get("freezes"):
        draft.default("method", "full", "trl: `use_peft` is off")
    peft.quantization_defaults(draft, kind="nf4", owner="trl")
    if bits is not None:
        prepared = bits == 8 or draft.get("precision.bf16") is False
        by_release(draft, "quantization.prepared", "trl", ("", prepared), ("0.26", False))
        by_release(draft, "adapter.dtype", "trl", ("", "float32"), ("0.26", "bfloat16"))
    dtype = fragment.written("dtype") or fragment.written("torch_dtype")
    if not draft.has("precision.weights") and dtype is None:
        old = release(draft.versions, "trl").since("0.27") is False
        draft_note = "trl >=0.27, or transformers <5"
        if old:
            load_dtype(draft)
        elif bits is None or release(draft.versions, "trl").since("0.27"):
            draft.default("precision.weights", "float32", draft_note)
        else:
            draft.either("precision.weights", ("float32", "trl >=0.27"), ("float16", "trl <0.27"))
    load_dtype(draft, dtype)
    peft.adapter_defaults(draft, 16, 32, 0.05, "trl")


def _length(draft: Draft, fragment: Fragment, goal: object) -> None:
    """Lengths, packing, padding. How long generated rows become is not known: `length.max` stays open for them."""
    draft.default("length.packing", False, "trl")
    if goal in ("grpo", "rloo"):
        first = ("", 512), ("0.26", None)
        by_release(draft, "length.prompt", "trl", *first, unit="token")
        by_release(draft, "length.completion", "trl", ("", 256), ("1.10", 512), unit="token")
    elif not fragment.facts.get("unlimited"):
        draft.default("length.max", 1024, "trl", "token")
    packing = draft.get("length.packing")
    if packing and fragment.written("packing_strategy") != "wrapped":
        by_release(draft, "length.padding_free", "trl", ("", False), ("0.20", True))
    else:
        draft.default("length.padding_free", False, "trl")
    micro = draft.get("batch.micro") or 8
    full = bool(packing or draft.get("length.padding_free") or (micro == 1 and goal in ("sft", None)))
    draft.derive("length.padded", not full, "packing, batch size and collator")


def _loss(draft: Draft, fragment: Fragment, goal: object) -> None:
    """How the logits become a loss: full, in chunks, or inside the output head."""
    if draft.get("kernels") == "liger":
        draft.derive("loss", "liger", "`use_liger_kernel`")
    elif goal is None:
        since = release(draft.versions, "trl").since
        if since("1.7") is not False:  # open which trainer: some of them never build the logits
            fused = "trl-chunked" if since("1.15") is False else "trl-fused"
            draft.either("loss", (fused, "SFT by a new trl"), ("full", "another trainer"), origin="derived")
    elif goal == "sft":
        word = fragment.written("loss_type")
        if word in ("nll", "dft"):
            by_release(draft, "loss", "trl", ("", "full"), ("1.15", "trl-fused" if word == "nll" else "full"))
        elif word == "chunked_nll":
            by_release(draft, "loss", "trl", ("", "trl-chunked"), ("1.15", "trl-fused"))
        else:
            by_release(draft, "loss", "trl", ("", "full"), ("1.7", "trl-chunked"), ("1.15", "trl-fused"))
    elif goal == "dpo":
        by_release(draft, "loss", "trl", ("", "full"), ("1.15", "trl-fused"))


def _reference(draft: Draft, fragment: Fragment, goal: object) -> None:
    """The second model of preference methods: none, the base with adapters off, precomputed, or a copy."""
    if goal in NO_REFERENCE:
        draft.derive("reference", "none", f"{goal} has no reference model")
        return
    if goal not in ("dpo", "kto", "grpo", "rloo"):
        return
    method = draft.get("method")
    model = None if method is None else "adapter-off" if method in ("lora", "qlora") else "copy"
    if goal in ("grpo", "rloo"):
        beta = fragment.written("beta")
        if beta is None and goal == "grpo" and model is not None:
            by_release(draft, "reference", "trl", ("", model), ("0.19", "none"))
            return
        if beta == 0:
            draft.derive("reference", "none", "`beta: 0`")
            return
    elif fragment.written("precompute_ref_log_probs") is True:
        known = release(draft.versions, "trl")
        kept = known.since("0.29") and known.since("1.4") is False
        draft.derive("reference", model if kept and model else "precomputed", "`precompute_ref_log_probs`")
        return
    if model is not None:
        draft.derive("reference", model, f"{goal} compares with where it started")
