"""verl: PPO, GRPO and kin over Ray (`actor_rollout_ref`), its SFT trainers, and the parts that Hydra composes them of.

The values are those of the actor's update; rollout engines, critics and reward models that share the devices need more.
What `param_offload` moves away between the phases is back during the update, so it is no offload of the states.

Source: verl 0.1-0.9, trainer/config/**.yaml, workers/fsdp_workers.py, workers/actor/dp_actor.py,
trainer/fsdp_sft_trainer.py.
"""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node, Scalar, Sequence
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, Reference, say
from trainlint.formats.reading import fragment_of, truth, whole
from trainlint.formats.semantics import degrees, megatron, peft
from trainlint.formats.semantics.interpolation import resolved
from trainlint.formats.semantics.release import by_release

NAME = "verl"
ACTOR = "actor_rollout_ref.actor."
MODEL = "actor_rollout_ref.model."
SHIPPED = frozenset(("ppo_trainer", "ppo_megatron_trainer", "sft_trainer", "sft_trainer_engine"))
"""Primary configs that verl installs: what they hold are its defaults."""
PARTS = frozenset(
    (
        "actor", "dp_actor", "megatron_actor", "veomni_actor", "critic", "dp_critic", "megatron_critic", "ref",
        "dp_ref", "megatron_ref", "rollout", "hf_model", "legacy_data", "reward_model", "dp_reward_model",
        "megatron_reward_model", "dp_reward_loop", "megatron_reward_loop", "reward_manager", "rollout_correction",
        "fsdp", "megatron", "npu_profile",
    )
)  # fmt: skip
"""Files of the groups that these are composed of."""
ESTIMATORS = {"gae": "ppo", "grpo": "grpo", "rloo": "rloo", "remax": "remax", "reinforce_plus_plus": "reinforce"}
STRATEGIES = {"fsdp": "fsdp", "fsdp2": "fsdp2"}


def recognise(document: Document, root: Node | None) -> int:
    """`actor_rollout_ref`, a class of verl's as `_target_`, its defaults, or the SFT trainer's model."""
    if not isinstance(root, Mapping):
        return 0
    names = root.names()
    if isinstance(root.get("actor_rollout_ref"), Mapping):
        return 95
    target = root.get("_target_")
    if isinstance(target, Scalar) and str(target.value).startswith("verl."):
        return 90
    if SHIPPED & _listed(root) and names & {"data", "trainer", "algorithm", "critic", "hydra"}:
        return 85
    data, trainer = root.get("data"), root.get("trainer")
    files = isinstance(data, Mapping) and "train_files" in data
    if files and isinstance(trainer, Mapping) and {"n_gpus_per_node", "nnodes", "total_epochs"} & trainer.names():
        return 80
    model = root.get("model")
    sft = isinstance(model, Mapping) and "partial_pretrain" in model
    return 90 if sft and {"data", "optim", "trainer"} & names else 0


def _listed(root: Mapping) -> frozenset[str]:
    defaults = root.get("defaults")
    items = defaults.items if isinstance(defaults, Sequence) else ()
    return frozenset(item.value for item in items if isinstance(item, Scalar) and isinstance(item.value, str))


def read(document: Document, root: Node | None) -> Fragment:
    """The composed config. A part on its own (an actor, an optimizer, an engine) says nothing of a run by itself."""
    from trainlint.formats.semantics.hydra import composed

    assert isinstance(root, Mapping)
    target = root.get("_target_")
    if "actor_rollout_ref" not in root and isinstance(target, Scalar):
        made = composed(document, root)
        return Fragment(NAME, document, root, framework=NAME, references=made.references)
    made = composed(document, root)
    tree = resolved(made.root)
    fragment = fragment_of(NAME, document, tree, framework=NAME, section="", launches=True)
    fragment.references += made.references
    missing = {name.rpartition("/")[2] for name in made.missing}
    fragment.facts["open"] = bool(missing - SHIPPED - PARTS)
    fragment.facts["megatron"] = bool(missing & {"ppo_megatron_trainer", "megatron_actor"})
    interpret(fragment)
    return fragment


def interpret(fragment: Fragment) -> None:
    """What the schema's marks can not say: adapters with a rank, dynamic batches, the objective, files of data."""
    values, keys = fragment.values, fragment.keys
    fragment.facts["sft"] = "actor_rollout_ref" not in keys
    strategy = fragment.written(ACTOR + "strategy")
    if strategy == "megatron" or (strategy is None and any(key.startswith(ACTOR + "megatron.") for key in keys)):
        fragment.facts["megatron"] = True
    degrees.positive(values)
    rank = values.get("adapter.rank")
    if rank is None or (isinstance(rank.value, int) and rank.value < 1):
        for path in [path for path in values if path.startswith("adapter.")]:
            del values[path]
    if truth(fragment.written(ACTOR + "use_dynamic_bsz")) is True:
        values.pop("batch.micro", None)
    steps = values.get("schedule.max_steps")
    if steps is not None and isinstance(steps.value, int) and steps.value < 1:
        del values["schedule.max_steps"]
    estimator = fragment.entry("algorithm.adv_estimator")
    if estimator is not None and isinstance(estimator.value, Scalar):
        word = ESTIMATORS.get(str(estimator.value.value))
        if word is not None:
            values["objective"] = say(NAME, "algorithm.adv_estimator", estimator.value, word)
    for key in (ACTOR + "strategy", "model.strategy"):
        entry = fragment.entry(key)
        if entry is not None and isinstance(entry.value, Scalar) and entry.value.value in STRATEGIES:
            values["sharding.kind"] = say(NAME, key, entry.value, STRATEGIES[str(entry.value.value)])
    offload = fragment.entry(ACTOR + "fsdp_config.offload_policy")
    if offload is not None and isinstance(offload.value, Scalar) and truth(offload.value.value) is True:
        values["sharding.offload_parameters"] = say(NAME, offload.key.raw, offload.value, "cpu")
    for name in ("train_files", "val_files"):
        node = fragment.entry(f"data.{name}")
        if node is not None and isinstance(node.value, Scalar) and isinstance(node.value.value, str):
            fragment.references.append(Reference("dataset", node.value.value, node.value.place, f"data.{name}"))


def complete(draft: Draft) -> None:
    """FSDP over float32 weights computing in bfloat16, or Megatron; nothing by default where files were not found."""
    fragment = draft.fragments[0]
    draft.default("framework", NAME, NAME)
    sft = bool(fragment.facts.get("sft"))
    if fragment.facts.get("open"):
        return
    draft.default("parallel.nodes", 1, NAME)
    draft.default("parallel.per_node", 8, NAME)
    if sft:
        draft.default("objective", "sft", NAME)
        draft.default("batch.micro", 4, NAME, "sample")
        draft.default("length.max", 1024, NAME, "token")
        by_release(draft, "checkpointing.kind", NAME, ("", "none"), ("0.4.1", "full"))
        draft.default("clip", 1.0, NAME)
    else:
        _actor(draft, fragment)
    adapted = draft.get("adapter.rank") is not None
    draft.derive("method", "lora" if adapted else "full", "`lora_rank`")
    if fragment.facts.get("megatron"):
        megatron.shared(draft, NAME)
        megatron.states(draft, "bfloat16", True, "verl's Megatron engine")
    else:
        _fsdp(draft, fragment, sft)
    peft.adapter_defaults(draft, 8, 16, 0.0, NAME)
    if adapted:
        draft.default("adapter.targets", ("all-linear",), NAME)
    draft.default("optimizer.name", "adamw_torch", NAME)
    draft.default("kernels", "none", NAME)
    draft.default("attention", "flash", "verl loads with flash_attention_2")
    total = fragment.value("data.train_batch_size", "sample") if sft else None
    if total is not None and isinstance(total.value, int) and total.value > 0:
        draft.values.setdefault("batch.effective", total)
        degrees.accumulation(draft, "`train_batch_size` over the micro batch and the devices")


def _actor(draft: Draft, fragment: Fragment) -> None:
    draft.default("objective", "ppo", NAME)
    draft.default("checkpointing.kind", "full", NAME)
    draft.default("clip", 1.0, NAME)
    draft.default("length.prompt", 512, NAME, "token")
    draft.default("length.completion", 512, NAME, "token")
    prompt, completion = draft.get("length.prompt"), draft.get("length.completion")
    if isinstance(prompt, int) and isinstance(completion, int):
        draft.derive("length.max", prompt + completion, "prompt and response", "token")
    by_release(draft, "length.padding_free", NAME, ("", False), ("0.7", True))
    kl = [truth(fragment.written(key)) for key in (ACTOR + "use_kl_loss", "algorithm.use_kl_in_reward")]
    adapted = draft.get("adapter.rank") is not None
    reference = "none" if True not in kl else "adapter-off" if adapted else "copy"
    draft.derive("reference", reference, "`use_kl_loss` and `use_kl_in_reward`")


def _fsdp(draft: Draft, fragment: Fragment, sft: bool) -> None:
    if sft:
        by_release(draft, "sharding.kind", NAME, ("", "fsdp"), ("0.4.1", "fsdp2"))
    draft.default("sharding.kind", "fsdp", NAME)
    draft.default("precision.weights", "float32", NAME)
    draft.default("precision.compute", "bfloat16", "verl's FSDP policy")
    draft.derive("precision.autocast", False, "FSDP's mixed precision policy casts the shards")
    draft.derive("precision.grad_scaler", False, NAME)
    draft.default("sharding.reduce_dtype", "float32", "verl's FSDP policy")
    draft.default("sharding.reshard_after_forward", True, NAME)
    draft.derive("sharding.wrap", "block", NAME)
    draft.derive("checkpointing.reentrant", False, NAME)
    if draft.get("sharding.offload_parameters") == "cpu":
        draft.derive("sharding.offload_optimizer", "cpu", "FSDP2's CPU offload")
    size = whole(fragment.written(ACTOR + "fsdp_config.fsdp_size"))
    if size is None or size < 1:
        degrees.data_parallel(draft, "the devices over `ulysses_sequence_parallel_size`")


FORMAT = Format(NAME, "verl config", recognise, read, complete, NAME, NAME)
