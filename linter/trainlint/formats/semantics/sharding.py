"""What accelerate, FSDP and DeepSpeed make of a trainer's run: engines, buckets, degrees of parallelism.

Sources: transformers integrations/deepspeed.py (`auto`), accelerate 1.15.0 utils/dataclasses.py, commands/launch.py;
DeepSpeed 0.19.8 runtime/zero/config.py.
"""

from __future__ import annotations

from trainlint.documents import Mapping, Node, Scalar
from trainlint.formats.format import Draft
from trainlint.formats.fragment import Fragment, say
from trainlint.formats.reading import listed
from trainlint.formats.semantics.release import by_release, release
from trainlint.formats.semantics.trainer_precision import engine
from trainlint.run import Value

STRATEGIES = {"1": "FULL_SHARD", "2": "SHARD_GRAD_OP", "3": "NO_SHARD", "4": "HYBRID_SHARD", "5": "HYBRID_SHARD_ZERO2"}
"""FSDP sharding strategies by torch's number, as accelerate reads it."""

WRAPS = {"TRANSFORMER_BASED_WRAP": "block", "SIZE_BASED_WRAP": "size", "NO_WRAP": "none"}
"""`fsdp_auto_wrap_policy` → how modules become units."""


def deepspeed_auto(draft: Draft, *fragments: Fragment) -> None:
    """Bucket sizes: what `auto` means under the Hugging Face integration, else DeepSpeed's defaults. In elements.

    `auto` needs the model's hidden size; it stays unknown without.
    """
    kind = draft.get("sharding.kind")
    if kind not in ("zero1", "zero2", "zero3"):
        return
    hidden = draft.get("model.shape.hidden")
    written = {name for fragment in fragments for name, entry in fragment.keys.items() if _auto(entry.value)}

    def bucket(path: str, name: str, scale: float, default: float) -> None:
        if any(key == name or key.endswith("." + name) for key in written):
            if isinstance(hidden, int):
                draft.derive(
                    path, int(scale * hidden * hidden), f"`auto` is {scale:g} x hidden size squared", "element"
                )
            return
        draft.default(path, default, "deepspeed", "element")

    bucket("sharding.reduce_bucket", "reduce_bucket_size", 1.0, 500_000_000)
    if kind == "zero3":
        bucket("sharding.prefetch_bucket", "stage3_prefetch_bucket_size", 0.9, 50_000_000)
        draft.default("sharding.sub_group", 1_000_000_000, "deepspeed", "element")
    else:
        draft.default("sharding.allgather_bucket", 500_000_000, "deepspeed", "element")
    draft.default("sharding.overlap_comm", kind == "zero3", "deepspeed")


def _auto(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value == "auto"


def fsdp_defaults(draft: Draft) -> None:
    """What FSDP does where the config is silent: strategy, resharding, parameter views, units."""
    kind = engine(draft)
    if kind not in ("fsdp", "fsdp2"):
        return
    draft.default("sharding.strategy", "FULL_SHARD", "accelerate")
    if kind == "fsdp2":
        draft.default("sharding.reshard_after_forward", True, "accelerate fsdp_version 2")
    else:
        kept = draft.get("sharding.strategy") in ("SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD_ZERO2")
        draft.derive("sharding.reshard_after_forward", not kept, "the sharding strategy")
        new = release(draft.versions, "accelerate").since("0.27") is not False
        draft.default("sharding.use_orig_params", new, "accelerate >=0.27" if new else "accelerate <0.27")
    if draft.get("method") in ("lora", "qlora") and draft.get("sharding.wrap") in (None, "block"):
        draft.values["sharding.wrap"] = Value(
            "peft", "derived", note="the Trainer makes adapters units of their own", file_format=""
        )


def trainer_fsdp(fragment: Fragment) -> None:
    """Read the Trainer's `fsdp` (`full_shard auto_wrap offload`, a list, or true) and an inline `fsdp_config`."""
    entry = fragment.entry("fsdp")
    words = _words(entry.value) if entry is not None else ()
    config = fragment.entry("fsdp_config")
    inline = config.value if config is not None and isinstance(config.value, Mapping) else None
    if not words or entry is None:
        return
    place = entry.value.place

    def put(path: str, value: object) -> None:
        fragment.values.setdefault(path, Value(value, "written", "fsdp", place, file_format=fragment.format))

    version = None if inline is None else _first(inline, "version", "fsdp_version")
    if version is not None and isinstance(version.value, int):
        put("sharding.kind", "fsdp2" if version.value == 2 else "fsdp")
    strategy = next((word.upper() for word in words if word.upper() in STRATEGIES.values()), None)
    if strategy is not None:
        put("sharding.strategy", strategy)
    if "offload" in words:
        put("sharding.offload_parameters", "cpu")
        put("sharding.offload_optimizer", "cpu")
    if "auto_wrap" in words:
        put("sharding.wrap", "block")
    fragment.facts["fsdp"] = True


def trainer_fsdp_kind(draft: Draft, fragment: Fragment) -> None:
    """Which FSDP the Trainer's `fsdp` starts: version 1 before transformers 5.10, 2 since."""
    if fragment.facts.get("fsdp"):
        by_release(draft, "sharding.kind", "transformers", ("", "fsdp"), ("5.10", "fsdp2"))


def _words(node: Node) -> tuple[str, ...]:
    if isinstance(node, Scalar):
        if node.value is True:
            return ("full_shard",)
        return tuple(node.value.replace(",", " ").lower().split()) if isinstance(node.value, str) else ()
    if isinstance(node, Mapping):
        return ()
    return tuple(str(item.value).lower() for item in node.items if isinstance(item, Scalar))


def _first(mapping: Mapping, *names: str) -> Scalar | None:
    for name in names:
        node = mapping.get(name)
        if isinstance(node, Scalar):
            return node
    return None


def fsdp_block(fragment: Fragment, block: Mapping, prefix: str) -> None:
    """Read an `fsdp_config`, of accelerate (`fsdp_…`) or of the Trainer (bare names), below the dotted `prefix`."""
    fields = {
        "sharding_strategy": "sharding.strategy",
        "reshard_after_forward": "sharding.reshard_after_forward",
        "auto_wrap_policy": "sharding.wrap",
        "use_orig_params": "sharding.use_orig_params",
        "offload_params": "sharding.offload_parameters",
        "cpu_offload": "sharding.offload_parameters",
        "activation_checkpointing": "checkpointing.kind",
        "state_dict_type": "checkpoint.full_state",
        "version": "sharding.kind",
    }
    for name, entry in block.index.items():
        bare = name.removeprefix("fsdp_")
        if bare == "transformer_layer_cls_to_wrap" and (classes := listed(entry.value)):
            fragment.values["sharding.wrap_classes"] = Value(
                classes, "written", prefix + name, entry.value.place, file_format=fragment.format
            )
        path = fields.get(bare)
        if path is None or not isinstance(entry.value, Scalar):
            continue
        for target, value in _fsdp_value(bare, path, entry.value):
            fragment.values[target] = say(fragment.format, prefix + name, entry.value, value)


def _fsdp_value(bare: str, path: str, node: Scalar) -> list[tuple[str, object]]:
    """What one key of an `fsdp_config` says, by path."""
    value = node.value
    word = str(value).upper()
    flag = {"TRUE": True, "FALSE": False, "1": True, "0": False}.get(word)
    match bare:
        case "sharding_strategy":
            strategy = STRATEGIES.get(word, word)
            return [(path, strategy)] if strategy in STRATEGIES.values() else []
        case "auto_wrap_policy":
            return [(path, WRAPS[word])] if word in WRAPS else []
        case "state_dict_type":
            return [(path, word == "FULL_STATE_DICT")]
        case "version":
            return [(path, "fsdp2")] if word == "2" else [(path, "fsdp")] if word == "1" else []
        case "offload_params" | "cpu_offload" if flag is not None:
            place = "cpu" if flag else "none"
            return [(path, place), ("sharding.offload_optimizer", place)]
        case "activation_checkpointing" if flag is not None:
            return [(path, "full")] if flag else []
        case "reshard_after_forward" if flag is None:
            return [("sharding.strategy", word)] if word in STRATEGIES.values() else []
        case _:
            return [] if flag is None else [(path, flag)]
