"""accelerate's launch config, and the Trainer's `fsdp_config` file, which is its FSDP block alone."""

from __future__ import annotations

from dataclasses import replace

from trainlint.documents import Document, Mapping, Node, Scalar
from trainlint.formats.format import Format
from trainlint.formats.fragment import Fragment, say
from trainlint.formats.reading import fragment_of
from trainlint.formats.semantics import sharding

NAME = "accelerate"
LAUNCH = frozenset(
    (
        "num_processes", "mixed_precision", "machine_rank", "num_machines", "fsdp_config", "deepspeed_config",
        "megatron_lm_config", "main_training_function", "downcast_bf16", "rdzv_backend", "same_network", "use_cpu",
        "gpu_ids", "tpu_env", "dynamo_config", "parallelism_config", "fp8_config",
    )
)  # fmt: skip
FSDP = frozenset(
    (
        "backward_prefetch", "forward_prefetch", "limit_all_gathers", "use_orig_params", "sync_module_states",
        "cpu_ram_efficient_loading", "activation_checkpointing", "transformer_layer_cls_to_wrap", "min_num_params",
        "auto_wrap_policy", "reshard_after_forward", "state_dict_type", "version", "xla", "xla_fsdp_settings",
        "xla_fsdp_grad_ckpt", "xla_fsdp_v2", "cpu_offload", "sharding_strategy", "offload_params",
        "forward_prefect", "mixed_precision", "backward_prefetch_policy", "buffer_dtype", "compute_dtype",
        "activation_checkpointing_offload",
    )
)  # fmt: skip
TELLING = FSDP - {"version", "activation_checkpointing", "mixed_precision", "xla", "cpu_offload", "state_dict_type"}


def recognise(document: Document, root: Node | None) -> int:
    """`distributed_type` or `compute_environment` with launch keys; or an object of FSDP keys alone."""
    if not isinstance(root, Mapping):
        return 0
    names = root.names()
    launch = len(names & LAUNCH)
    if "compute_environment" in names:
        return 95 if launch or "distributed_type" in names else 50
    if "distributed_type" in names:
        return 90 if launch else 0
    if (
        "distributed_type" not in names
        and {"num_processes", "mixed_precision"} <= names
        and names <= LAUNCH | {"debug"}
    ):
        return 60
    bare = {name.removeprefix("fsdp_") for name in names}
    return 60 if document.syntax == "json" and bare and bare <= FSDP and bare & TELLING else 0


def read(document: Document, root: Node | None) -> Fragment:
    """Processes, mixed precision, and the engine that `distributed_type` starts with its block."""
    if isinstance(root, Mapping) and not root.names() & (LAUNCH | {"distributed_type", "compute_environment"}):
        fragment = Fragment(NAME, document, root, framework="transformers", section="fsdp_config")
        sharding.fsdp_block(fragment, root, "")
        return fragment
    fragment = fragment_of(NAME, document, root, framework=NAME, section="ClusterConfig")
    if fragment.written("compute_environment") == "AMAZON_SAGEMAKER":
        fragment.section = "SageMakerConfig"
    world = fragment.values.get("parallel.world")
    if world is not None and isinstance(world.value, int) and world.value < 1:
        del fragment.values["parallel.world"]  # -1: as many as there are devices
    mixed = fragment.values.get("precision.mixed")
    if mixed is not None and mixed.value == "fp8":
        fragment.values["precision.fp8"] = replace(mixed, value=True)
    _cpu(fragment)
    _engine(fragment)
    return fragment


def _cpu(fragment: Fragment) -> None:
    entry = fragment.entry("distributed_type")
    if entry is not None and isinstance(entry.value, Scalar) and entry.value.value == "MULTI_CPU":
        fragment.values["device.cpu_only"] = say(NAME, "distributed_type", entry.value, True)


def _engine(fragment: Fragment) -> None:
    """The block of the engine that is started counts; the others are not read by accelerate."""
    entry = fragment.entry("distributed_type")
    written = entry.value if entry is not None and isinstance(entry.value, Scalar) else None
    kind = None if written is None or not isinstance(written.value, str) else written.value.upper()
    if written is not None and kind == "FSDP":
        fragment.values["sharding.kind"] = say(NAME, "distributed_type", written, "fsdp")
        block = fragment.entry("fsdp_config")
        if block is not None and isinstance(block.value, Mapping):
            sharding.fsdp_block(fragment, block.value, "fsdp_config.")
    if kind == "DEEPSPEED" and fragment.written("deepspeed_config.deepspeed_config_file") is None:
        stage = fragment.entry("deepspeed_config.zero_stage")
        if stage is not None and isinstance(stage.value, Scalar) and str(stage.value.value) in ("0", "1", "2", "3"):
            value = f"zero{stage.value.value}"
            fragment.values["sharding.kind"] = say(NAME, "deepspeed_config.zero_stage", stage.value, value)
        elif written is not None:
            fragment.values["sharding.kind"] = say(NAME, "distributed_type", written, "zero2")
    if kind != "DEEPSPEED":
        for path in [path for path, value in fragment.values.items() if value.key.startswith("deepspeed_config.")]:
            del fragment.values[path]
        fragment.references[:] = [one for one in fragment.references if one.role != "deepspeed"]


FORMAT = Format(NAME, "accelerate config", recognise, read, framework=NAME, package=NAME)
