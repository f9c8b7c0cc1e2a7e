"""LightningCLI: the Trainer's arguments; what model and data do is user code.

Source: lightning 2.0-2.6, pytorch/cli.py, pytorch/trainer/trainer.py, pytorch/strategies/{deepspeed,fsdp,ddp}.py.
"""

from __future__ import annotations

import re

from trainlint.documents import Document, Entry, Mapping, Node, Scalar, Sequence
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, Reference, say
from trainlint.formats.reading import fragment_of, real, truth
from trainlint.formats.semantics import degrees, optimizer_names
from trainlint.formats.semantics import lightning_precision as words
from trainlint.run import Value

NAME = "lightning"
TRAINER = frozenset(
    (
        "accelerator", "accumulate_grad_batches", "benchmark", "callbacks", "check_val_every_n_epoch", "detect_anomaly",
        "default_root_dir", "deterministic", "devices", "enable_checkpointing", "enable_progress_bar", "fast_dev_run",
        "gradient_clip_algorithm", "gradient_clip_val", "limit_test_batches", "limit_train_batches", "logger",
        "limit_val_batches", "log_every_n_steps", "max_epochs", "max_steps", "max_time", "min_epochs", "num_nodes",
        "num_sanity_val_steps", "overfit_batches", "plugins", "precision", "strategy", "sync_batchnorm",
        "val_check_interval",
    )
)  # fmt: skip
CLI = frozenset(("seed_everything", "trainer", "model", "data", "optimizer", "lr_scheduler", "ckpt_path", "fit"))
_DEEPSPEED = r"deepspeed(?:_stage_([123]))?(_offload)?(_nvme)?"


def recognise(document: Document, root: Node | None) -> int:
    """The Trainer's arguments beside a seed, or beside a model or data named by class or given by arguments."""
    if not isinstance(root, Mapping):
        return 0
    fit = root.get("fit")
    if isinstance(fit, Mapping) and isinstance(fit.get("trainer"), Mapping):
        root = fit
    trainer, names = root.get("trainer"), root.names()
    if not isinstance(trainer, Mapping):
        return 0
    known = len(trainer.names() & TRAINER)
    if known < 2 or 2 * known < len(trainer.entries) or "exp_manager" in names or "_target_" in trainer:
        return 0
    parts = [part for name in ("model", "data") if isinstance(part := root.get(name), Mapping)]
    if "seed_everything" in names or any("class_path" in part for part in parts):
        return 90
    if names == {"trainer"} and known == len(trainer.entries) and known >= 4:
        return 60
    return 60 if parts and names <= CLI and not any("_target_" in part for part in parts) and known >= 3 else 0


def read(document: Document, root: Node | None) -> Fragment:
    """The Trainer's arguments, and of the user's own what goes by its usual name."""
    assert isinstance(root, Mapping)
    fit = root.get("fit")
    tree = fit if isinstance(fit, Mapping) and "trainer" in fit else root
    fragment = fragment_of(NAME, document, tree, framework=NAME, section="", launches=True)
    values = fragment.values
    steps = values.get("schedule.max_steps")
    if steps is not None and isinstance(steps.value, int) and steps.value < 0:
        del values["schedule.max_steps"]  # -1: the epochs decide
    _devices(fragment)
    _strategy(fragment)
    _plugins(fragment)
    optimizer_class(fragment, "optimizer")
    degrees.positive(values)
    return fragment


def _devices(fragment: Fragment) -> None:
    entry = fragment.entry("trainer.devices")
    node = entry.value if entry is not None else None
    count: int | None = None
    if isinstance(node, Sequence):
        count = len(node.items)
    elif isinstance(node, Scalar) and isinstance(node.value, int) and not isinstance(node.value, bool):
        count = node.value
    elif isinstance(node, Scalar) and isinstance(node.value, str) and "," in node.value:
        count = len([part for part in node.value.split(",") if part.strip()])
    if entry is not None and count is not None and count > 0:
        fragment.values["parallel.per_node"] = Value(
            count, "written", "trainer.devices", entry.value.place, file_format=NAME
        )


def _strategy(fragment: Fragment) -> None:
    """A strategy by its word, or by its class with arguments."""
    entry = fragment.entry("trainer.strategy")
    if entry is None:
        return
    node, values = entry.value, fragment.values
    if isinstance(node, Scalar) and isinstance(node.value, str):
        word = node.value
        found = re.fullmatch(_DEEPSPEED, word)
        if found is not None:
            values["sharding.kind"] = say(NAME, "trainer.strategy", node, f"zero{found[1] or 2}")
            place = "nvme" if found[3] else "cpu" if found[2] else None
            if place is not None:
                values["sharding.offload_optimizer"] = say(NAME, "trainer.strategy", node, place)
            if place is not None and found[1] == "3":
                values["sharding.offload_parameters"] = say(NAME, "trainer.strategy", node, place)
        elif word in ("fsdp", "fsdp_cpu_offload"):
            values["sharding.kind"] = say(NAME, "trainer.strategy", node, "fsdp")
            if word != "fsdp":
                values["sharding.offload_parameters"] = say(NAME, "trainer.strategy", node, "cpu")
        elif word.startswith("ddp") or word in ("auto", "single_device"):
            values["sharding.kind"] = say(NAME, "trainer.strategy", node, "none")
        return
    path = fragment.entry("trainer.strategy.class_path")
    if path is None or not isinstance(path.value, Scalar) or not isinstance(path.value.value, str):
        return
    name, given = path.value.value.rpartition(".")[2], "trainer.strategy.init_args."
    if name == "DeepSpeedStrategy":
        stage, config = fragment.value(given + "stage"), fragment.value(given + "config")
        if config is not None and isinstance(config.value, str) and config.place is not None:
            fragment.references.append(Reference("deepspeed", config.value, config.place, config.key))
        if fragment.written(given + "config") is None:
            values["sharding.kind"] = say(NAME, path.key.raw, path.value, f"zero{stage.value if stage else 2}")
        for flag, target in (("offload_optimizer", "offload_optimizer"), ("offload_parameters", "offload_parameters")):
            one = fragment.entry(given + flag)
            if one is not None and isinstance(one.value, Scalar) and truth(one.value.value):
                values[f"sharding.{target}"] = say(NAME, given + flag, one.value, "cpu")
        for key, target in (
            ("reduce_bucket_size", "reduce_bucket"),
            ("allgather_bucket_size", "allgather_bucket"),
            ("sub_group_size", "sub_group"),
        ):
            one = fragment.entry(given + key)
            size = real(one.value.value) if one is not None and isinstance(one.value, Scalar) else None
            if one is not None and isinstance(one.value, Scalar) and size is not None:
                values[f"sharding.{target}"] = say(NAME, given + key, one.value, size, "element")
    elif name == "FSDPStrategy":
        values["sharding.kind"] = say(NAME, path.key.raw, path.value, "fsdp")
        strategy = fragment.entry(given + "sharding_strategy")
        if strategy is not None and isinstance(strategy.value, Scalar) and isinstance(strategy.value.value, str):
            values["sharding.strategy"] = say(NAME, given + "sharding_strategy", strategy.value, strategy.value.value)
        if fragment.written(given + "cpu_offload") is True:
            offload = fragment.entry(given + "cpu_offload")
            assert offload is not None
            assert isinstance(offload.value, Scalar)
            values["sharding.offload_parameters"] = say(NAME, given + "cpu_offload", offload.value, "cpu")
        for key in ("activation_checkpointing_policy", "activation_checkpointing"):
            policy = fragment.entry(given + key)
            if policy is not None and not (isinstance(policy.value, Scalar) and policy.value.value is None):
                values["checkpointing.kind"] = Value(
                    "full", "written", given + key, policy.value.place, file_format=NAME
                )
    elif name == "ModelParallelStrategy":
        values["sharding.kind"] = say(NAME, path.key.raw, path.value, "fsdp2")
        for key, target in (("tensor_parallel_size", "parallel.tensor"), ("data_parallel_size", "parallel.data")):
            size_of = fragment.value(given + key)
            if size_of is not None and isinstance(size_of.value, int):
                values[target] = size_of
    elif name in ("DDPStrategy", "SingleDeviceStrategy"):
        values["sharding.kind"] = say(NAME, path.key.raw, path.value, "none")


def _plugins(fragment: Fragment) -> None:
    """BitsandbytesPrecision: `nf4`, `nf4-dq`, `int8-training`, …"""
    entry = fragment.entry("trainer.plugins")
    if entry is None:
        return
    plugins = entry.value.items if isinstance(entry.value, Sequence) else (entry.value,)
    for plugin in plugins:
        mode = plugin.find("init_args.mode") if isinstance(plugin, Mapping) else None
        path = plugin.get("class_path") if isinstance(plugin, Mapping) else None
        if not isinstance(mode, Scalar) or not isinstance(path, Scalar) or "Bitsandbytes" not in str(path.value):
            continue
        word = str(mode.value)
        for target, value in (
            ("bits", 8 if word.startswith("int8") else 4),
            ("type", word.partition("-")[0]),
            ("double", word.endswith("-dq")),
        ):
            fragment.values[f"quantization.{target}"] = say(NAME, "trainer.plugins", mode, value)


def optimizer_class(fragment: Fragment, key: str, fused: bool = False) -> None:
    """`optimizer.name` and betas of an optimizer given by name or by `class_path` and `init_args`."""
    entry: Entry | None = fragment.entry(key)
    if entry is not None and isinstance(entry.value, Mapping):
        entry = fragment.entry(f"{key}.class_path")
        fused = fused or truth(fragment.written(f"{key}.init_args.fused")) is True
        betas = fragment.entry(f"{key}.init_args.betas")
        if betas is not None and isinstance(betas.value, Sequence) and len(betas.value.items) == 2:
            for path, item in zip(("beta1", "beta2"), betas.value.items, strict=True):
                number = real(item.value) if isinstance(item, Scalar) else None
                if isinstance(item, Scalar) and number is not None:
                    fragment.values[f"optimizer.{path}"] = say(fragment.format, f"{key}.init_args.betas", item, number)
    if entry is not None and isinstance(entry.value, Scalar):
        name = optimizer_names.by_class(entry.value.value, fused)
        if name is not None:
            fragment.values["optimizer.name"] = say(fragment.format, key, entry.value, name)


def complete(draft: Draft) -> None:
    """The Trainer's defaults; method, adapter and length stay open, for the module's code decides them."""
    fragment = draft.fragments[0]
    draft.default("framework", NAME, NAME)
    draft.default("batch.accumulation", 1, NAME)
    draft.default("clip", 0.0, "lightning does not clip unless `gradient_clip_val` is set")
    draft.default("parallel.nodes", 1, NAME)
    processes = degrees.data_parallel(draft, "`devices` times `num_nodes`")
    if processes == 1:
        draft.derive("sharding.kind", "none", "one device")
    elif fragment.entry("trainer.strategy") is None:
        draft.derive("sharding.kind", "none", "strategy `auto` is DDP on several devices")
    kind = str(draft.get("sharding.kind") or "")
    if kind.startswith("zero"):
        draft.default("sharding.reduce_bucket", 200_000_000.0, "lightning's DeepSpeedStrategy", "element")
        draft.default("sharding.allgather_bucket", 200_000_000.0, "lightning's DeepSpeedStrategy", "element")
        draft.default("sharding.overlap_comm", True, "lightning's DeepSpeedStrategy")
        draft.default("sharding.sub_group", 1e12, "lightning's DeepSpeedStrategy", "element")
    elif kind in ("fsdp", "fsdp2"):
        draft.default("sharding.strategy", "FULL_SHARD", "lightning's FSDPStrategy")
        if draft.get("sharding.offload_parameters") == "cpu":
            draft.derive("sharding.offload_optimizer", "cpu", "FSDP's CPUOffload")
    written = fragment.written("trainer.precision")
    word = words.meant(written) if written is not None else "32-true"
    if word is not None and (kind or written is None):
        engine = "deepspeed" if kind.startswith("zero") else "fsdp" if kind in ("fsdp", "fsdp2") else ""
        words.regime(draft, word, engine)
    elif word is not None and word.endswith("-true"):
        words.regime(draft, word)


FORMAT = Format(NAME, "LightningCLI config", recognise, read, complete, NAME, NAME)
