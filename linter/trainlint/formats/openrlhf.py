"""OpenRLHF: arguments of `openrlhf.cli.train_*`, mostly in shell scripts, flat up to 0.9 and dotted since 0.10.

Source: openrlhf 0.3.8-0.11.2, cli/train_{sft,dpo,kto,rm,ppo_ray}.py, utils/deepspeed/deepspeed.py, models/actor.py.
"""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node, Scalar
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, say
from trainlint.formats.reading import fragment_of, truth, whole
from trainlint.formats.semantics import degrees, peft, sharding
from trainlint.formats.semantics import trainer_precision as precision
from trainlint.formats.semantics.release import release

NAME = "openrlhf"
OWN = frozenset(
    (
        "micro_train_batch_size", "zero_stage", "adam_offload", "packing_samples", "micro_rollout_batch_size",
        "actor_num_gpus_per_node", "generate_max_len", "prompt_max_len", "init_kl_coef", "reward_pretrain",
        "ref_num_gpus_per_node", "vllm_num_engines", "advantage_estimator", "ring_attn_size",
    )
)  # fmt: skip
OBJECTIVES = {
    "train_sft": "sft",
    "train_dpo": "dpo",
    "train_kto": "kto",
    "train_rm": "reward",
    "train_prm": "sft",
    "train_ppo": "ppo",
    "train_ppo_ray": "ppo",
}
"""Programs of `openrlhf.cli` → objective."""
LENGTHS = {"sft": 2048, "dpo": 512, "kto": 512, "reward": 512}


def recognise(document: Document, root: Node | None) -> int:
    """Several of its arguments, the micro batch or ZeRO's stage among them."""
    if not isinstance(root, Mapping):
        return 0
    names = root.names()
    own = len(names & OWN)
    return 90 if own >= 3 or (own == 2 and "pretrain" in names) else 0


def read(document: Document, root: Node | None) -> Fragment:
    """The arguments."""
    fragment = fragment_of(NAME, document, root, framework=NAME, launches=True)
    interpret(fragment)
    return fragment


def interpret(fragment: Fragment) -> None:
    """What the schema's marks can not say: the stage, ranks of zero, dtypes."""
    values = fragment.values
    degrees.positive(values)
    for key in ("zero_stage", "ds.zero_stage"):
        entry = fragment.entry(key)
        stage = whole(entry.value.value) if entry is not None and isinstance(entry.value, Scalar) else None
        if entry is not None and isinstance(entry.value, Scalar) and stage in (0, 1, 2, 3):
            values["sharding.kind"] = say(fragment.format, key, entry.value, f"zero{stage}")
    rank = values.get("adapter.rank")
    if rank is None or (isinstance(rank.value, int) and rank.value < 1):
        for path in [path for path in values if path.startswith("adapter.")]:
            del values[path]
    for key in ("param_dtype", "ds.param_dtype", "bf16"):
        entry = fragment.entry(key)
        if entry is None or not isinstance(entry.value, Scalar):
            continue
        half = entry.value.value == "bf16" if key != "bf16" else truth(entry.value.value)
        if half is not None:
            values["precision.bf16"] = say(fragment.format, key, entry.value, half)
        if key != "bf16" and entry.value.value == "fp16":
            values["precision.fp16"] = say(fragment.format, key, entry.value, True)
    offload = values.get("sharding.offload_optimizer")
    if offload is not None and offload.value == "none":
        del values["sharding.offload_optimizer"]


def complete(draft: Draft) -> None:
    """DeepSpeed's regimes; the values are those of the trained (actor) model."""
    fragment = draft.fragments[0]
    draft.default("framework", NAME, NAME)
    rl = any(
        key in fragment.keys for key in ("actor_num_gpus_per_node", "micro_rollout_batch_size", "generate_max_len")
    )
    if rl:
        draft.default("objective", "ppo", "arguments of the PPO trainer")
    objective = str(draft.get("objective") or "")
    draft.default("sharding.kind", "zero2", NAME)
    quantized = draft.get("quantization.bits") is not None
    adapted = draft.get("adapter.rank") is not None
    draft.derive("method", "qlora" if quantized and adapted else "lora" if adapted else "full", "`lora_rank`")
    if not draft.has("precision.bf16"):
        new = release(draft.versions, NAME).since("0.9.10")
        options = [(True, "openrlhf >=0.9.10"), (False, "openrlhf <0.9.10")]
        draft.either("precision.bf16", *[one for one in options if new is None or one[0] is new])
    draft.default("precision.fp16", False, NAME)
    if draft.has("precision.weights"):
        draft.values.pop("precision.weights")
    precision.mixed_precision(draft)
    draft.default("sharding.overlap_comm", False, NAME)
    sharding.deepspeed_auto(draft, *draft.fragments)
    if adapted:
        draft.default("adapter.targets", ("all-linear",), NAME)
        peft.adapter_defaults(draft, 8, 16, 0.0, NAME)
    peft.quantization_defaults(draft, "nf4", True, NAME)
    if objective and objective != "ppo":
        draft.default("batch.micro", 8, NAME, "sample")
        draft.default("length.max", LENGTHS.get(objective, 512), NAME, "token")
    prompt, completion = draft.get("length.prompt"), draft.get("length.completion")
    if objective == "ppo" and isinstance(prompt, int) and isinstance(completion, int):
        draft.derive("length.max", prompt + completion, "prompt and response", "token")
    degrees.data_parallel(draft, "the processes over the other degrees")
    degrees.accumulation(draft, "`train_batch_size` over the micro batch and the processes")
    draft.default("checkpointing.kind", "none", NAME)
    draft.default("checkpointing.reentrant", False, NAME)
    draft.default("kernels", "none", NAME)
    draft.default("length.padding_free", False, NAME)
    draft.default("clip", 1.0, NAME)
    if draft.get("sharding.offload_optimizer") == "cpu":
        draft.default("optimizer.name", "adamw_torch_fused", "DeepSpeedCPUAdam")
    draft.default("optimizer.name", "adamw_torch_fused", "FusedAdam")
    if objective in ("dpo", "kto", "ppo"):
        draft.derive("reference", "copy", "OpenRLHF loads a second model")


def objective_of(program: str) -> str | None:
    """What a program of `openrlhf.cli` trains for, or None where it trains nothing."""
    return OBJECTIVES.get(program.rpartition(".")[2].removesuffix(".py"))


FORMAT = Format(NAME, "OpenRLHF arguments", recognise, read, complete, NAME, NAME)
