"""A DeepSpeed file in an accelerate config, and values beside it that only the file may hold."""

from collections.abc import Iterator

from trainlint.api import FileView, Found, rule

INLINE = (
    "gradient_accumulation_steps",
    "gradient_clipping",
    "zero_stage",
    "offload_optimizer_device",
    "offload_param_device",
    "offload_param_nvme_path",
    "offload_optimizer_nvme_path",
    "zero3_save_16bit_model",
)
"""What accelerate's `_deepspeed_config_checks` refuses beside `deepspeed_config_file` (utils/dataclasses.py)."""
FILE = "deepspeed_config.deepspeed_config_file"


@rule(severity="error", on="file", formats=("accelerate",))
def check(view: FileView) -> Iterator[Found]:
    fragment = view.fragment
    file = fragment.entry(FILE)
    if file is None or str(fragment.written("distributed_type")).upper() != "DEEPSPEED":
        return
    if fragment.written(FILE) in (None, "", "none", "None"):
        return
    beside = [name for name in INLINE if fragment.entry(f"deepspeed_config.{name}") is not None]
    mixed = fragment.entry("mixed_precision")
    names = beside + (["mixed_precision"] if mixed is not None else [])
    if names:
        first = fragment.entry(f"deepspeed_config.{beside[0]}") if beside else mixed
        assert first is not None
        yield Found(
            at=first.key,
            message=", ".join(f"`{name}`" for name in names)
            + f" beside `deepspeed_config_file`: accelerate refuses {'them' if len(names) > 1 else 'it'} here",
            help="move them into the DeepSpeed file" if len(names) > 1 else "move it into the DeepSpeed file",
            notes=[(file.value, "the file")],
        )
