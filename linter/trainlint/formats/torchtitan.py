"""torchtitan: pre-training jobs in TOML, as read up to 0.2.2 (0.3 has Python configs only).

Source: torchtitan 0.1.0 to 0.2.2, torchtitan/config/job_config.py and train.py.
"""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node, Scalar
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, say
from trainlint.formats.reading import fragment_of, listed, schema, truth, whole
from trainlint.run import Value

NAME = "torchtitan"
TRAINING = frozenset(("seq_len", "local_batch_size", "batch_size", "steps"))
OTHERS = frozenset(("job", "metrics", "profiling", "parallelism", "activation_checkpoint", "lr_scheduler"))
DP = ("data_parallel_degree", "data_parallel_replicate_degree", "data_parallel_shard_degree")


def recognise(document: Document, root: Node | None) -> int:
    """Tables `model` and `training` with what a job says of them, beside others of a job's tables."""
    if not isinstance(root, Mapping) or document.syntax not in ("toml", "json"):
        return 0
    model, training = root.get("model"), root.get("training")
    if not isinstance(model, Mapping) or not isinstance(training, Mapping):
        return 0
    others = len(root.names() & OTHERS)
    if not training.names() & TRAINING or not others:
        return 0
    return 95 if "flavor" in model or others >= 3 else 60


def read(document: Document, root: Node | None) -> Fragment:
    """What the job's tables say."""
    fragment = fragment_of(NAME, document, root, framework="torchtitan", launches=True)
    _model(fragment)
    _checkpointing(fragment)
    _optimizer(fragment)
    converters = fragment.entry("model.converters")
    names = listed(converters.value) if converters is not None else None
    if converters is not None and names and any("float8" in name for name in names):
        fragment.values["precision.fp8"] = Value(
            True, "written", "model.converters", converters.value.place, file_format=NAME
        )
    total = fragment.value("training.global_batch_size")
    if total is not None and isinstance(total.value, int) and total.value > 0:
        fragment.values["batch.effective"] = Value(
            total.value, "written", total.key, total.place, total.raw, "sample", file_format=NAME
        )
    for path in ("parallel.tensor", "parallel.pipeline", "parallel.context", "parallel.expert"):
        degree = fragment.values.get(path)
        if degree is not None and isinstance(degree.value, int) and degree.value < 1:
            del fragment.values[path]
    return fragment


def _model(fragment: Fragment) -> None:
    name, flavor = fragment.written("model.name"), fragment.entry("model.flavor")
    if flavor is not None and isinstance(flavor.value, Scalar):
        model = schema(NAME)["x-flavors"]["models"].get(name, {}).get(flavor.value.value)
        if model is not None:
            fragment.values["model.id"] = say(NAME, "model.flavor", flavor.value, model)
    config = fragment.value("model.config")
    if config is not None and isinstance(config.value, str) and not config.value.endswith(".json"):
        fragment.values["model.id"] = config


def _checkpointing(fragment: Fragment) -> None:
    """Every n-th block is recomputed in full; `op` keeps what is dear to compute again."""
    mode = fragment.entry("activation_checkpoint.mode")
    option = fragment.entry("activation_checkpoint.selective_ac_option")
    if mode is None or not isinstance(mode.value, Scalar):
        return
    kind = mode.value.value
    every = whole(option.value.value) if option is not None and isinstance(option.value, Scalar) else None
    if kind == "selective" and every is not None and option is not None and isinstance(option.value, Scalar):
        fragment.values["checkpointing.every"] = say(
            NAME, "activation_checkpoint.selective_ac_option", option.value, every
        )
        kind = "full"
    if kind in ("none", "full", "selective"):
        fragment.values["checkpointing.kind"] = say(NAME, "activation_checkpoint.mode", mode.value, kind)
    fragment.facts["op"] = option is not None and every is None


def _optimizer(fragment: Fragment) -> None:
    entry = fragment.entry("optimizer.name")
    if entry is None or not isinstance(entry.value, Scalar) or entry.value.value not in ("Adam", "AdamW"):
        return
    plain = fragment.written("optimizer.implementation") in ("foreach", "for-loop")
    name = "adamw_torch" if plain or truth(fragment.written("optimizer.fused")) is False else "adamw_torch_fused"
    fragment.values["optimizer.name"] = say(NAME, "optimizer.name", entry.value, name)
    if fragment.written("optimizer.implementation") == "for-loop":
        fragment.values["optimizer.foreach"] = say(NAME, "optimizer.implementation", entry.value, False)


def complete(draft: Draft) -> None:
    """float32 weights and states, bfloat16 compute through FSDP2, every sequence full."""
    draft.default("framework", NAME, "torchtitan")
    draft.default("method", "full", "torchtitan")
    draft.default("objective", "pretrain", "torchtitan")
    draft.default("batch.micro", 8, "torchtitan", "sample")
    draft.default("length.max", 2048, "torchtitan", "token")
    draft.derive("length.packing", True, "torchtitan cuts one stream of text into sequences")
    draft.derive("length.padded", False, "torchtitan cuts one stream of text into sequences")
    draft.default("clip", 1.0, "torchtitan")
    draft.default("optimizer.name", "adamw_torch_fused", "torchtitan")
    draft.default("optimizer.in_backward", False, "torchtitan")
    own = draft.fragment(NAME)
    if not draft.has("checkpointing.kind"):
        draft.default("checkpointing.kind", "full", "torchtitan recomputes every second block")
        draft.default("checkpointing.every", 2, "torchtitan")
    elif draft.get("checkpointing.kind") == "selective" and own is not None and not own.facts.get("op"):
        kind = draft.values["checkpointing.kind"]
        draft.values["checkpointing.kind"] = Value("full", "written", kind.key, kind.place, kind.raw, file_format=NAME)
        draft.default("checkpointing.every", 2, "torchtitan's `selective_ac_option`")
    draft.derive("checkpointing.reentrant", False, "torchtitan uses the non-reentrant checkpoint")
    draft.default("attention", "sdpa", "torchtitan")
    draft.default("loss", "full", "torchtitan <0.3 builds the logits in float32")
    draft.default("compile", False, "torchtitan")
    _degrees(draft)
    _precision(draft)
    accumulation = 1
    total, micro, data = draft.get("batch.effective"), draft.get("batch.micro"), draft.get("parallel.data")
    if isinstance(total, int):
        if not isinstance(micro, int) or not isinstance(data, int) or micro * data < 1 or total % (micro * data):
            return
        accumulation = total // (micro * data)
    draft.derive("batch.accumulation", accumulation, "`global_batch_size` over `local_batch_size` and the data ranks")


def _degrees(draft: Draft) -> None:
    own = draft.fragment(NAME)
    assert own is not None, "the run's root is this format's"
    old, replicate, shard = (
        next(
            (found for table in ("parallelism", "training") if (found := _whole(own, f"{table}.{key}")) is not None),
            None,
        )
        for key in DP
    )
    replicate, shard = replicate or 1, shard or old or -1
    others = 1
    for path in ("parallel.tensor", "parallel.pipeline", "parallel.context"):
        draft.default(path, 1, "torchtitan")
        degree = draft.get(path)
        others *= degree if isinstance(degree, int) else 1
    world = draft.get("parallel.world") or draft.get("device.count")
    if shard < 1 and isinstance(world, int) and world % (others * replicate) == 0:
        shard = world // (others * replicate)
    if shard > 0:
        draft.derive("parallel.data", replicate * shard, "the data-parallel degrees")
        draft.derive("parallel.world", replicate * shard * others, "the product of the degrees")
    note = f"`data_parallel_shard_degree` {shard}" if shard > 0 else "the weights are sharded over the devices left"
    draft.derive("sharding.kind", "none" if shard == 1 else "fsdp2", note)
    if shard != 1:
        pipeline = draft.get("parallel.pipeline")
        draft.default("sharding.reshard_after_forward", not isinstance(pipeline, int) or pipeline == 1, "torchtitan")
        draft.default("sharding.reduce_dtype", "float32", "torchtitan")
        draft.derive("sharding.wrap", "block", "torchtitan")
    if draft.get("sharding.offload_parameters") == "cpu":
        draft.derive("sharding.offload_optimizer", "cpu", "`enable_cpu_offload`")


def _precision(draft: Draft) -> None:
    draft.default("precision.weights", "float32", "torchtitan")
    if draft.get("sharding.kind") == "none" and (
        draft.get("parallel.tensor") != 1 or draft.get("parallel.pipeline") != 1
    ):
        weights = draft.get("precision.weights")
        draft.values.pop("precision.compute", None)
        draft.derive("precision.compute", weights, "torchtitan mixes precision only with data parallelism")
    draft.default("precision.compute", "bfloat16", "torchtitan")
    mixed = draft.get("precision.compute") != draft.get("precision.weights")
    draft.derive(
        "precision.autocast", mixed and draft.get("sharding.kind") == "none", "autocast where FSDP2 does not cast"
    )
    draft.derive("precision.grad_scaler", False, "torchtitan never scales the loss")


def _whole(fragment: Fragment, key: str) -> int | None:
    return whole(fragment.written(key))


FORMAT = Format(
    name=NAME,
    title="torchtitan job",
    recognise=recognise,
    read=read,
    complete=complete,
    framework=NAME,
    package=NAME,
)
