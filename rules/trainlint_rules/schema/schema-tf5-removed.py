"""Keys of `TrainingArguments` that transformers took away."""

from collections.abc import Iterator

from trainlint.api import (
    Departed,
    Fix,
    Found,
    RunView,
    departed,
    history,
    installed,
    remove_line,
    rename_key,
    rule,
    said,
)

FORMATS = ("hf-trainer", "trl", "llamafactory", "python-script", "shell-launcher")
ELSEWHERE = ("warmup_ratio", "group_by_length", "evaluation_strategy", "eval_strategy")
"""Keys that rules of their own speak of."""
IDLE = {
    "overwrite_output_dir": "remove it, and the old folder by hand",
    "save_safetensors": "remove it: checkpoints are safetensors",
    "use_mps_device": "remove it: the device is found",
    "logging_dir": "remove it: the environment's `TENSORBOARD_LOGGING_DIR` says where",
    "include_tokens_per_second": "remove it, or write `include_num_input_tokens_seen`",
    "adafactor": "write `optim: adafactor`",
}
WARNED = frozenset(
    (
        "adafactor", "dispatch_batches", "fp16_backend", "fsdp_min_num_params", "fsdp_transformer_layer_cls_to_wrap",
        "include_inputs_for_metrics", "logging_dir", "no_cuda", "per_gpu_eval_batch_size", "per_gpu_train_batch_size",
        "push_to_hub_organization", "push_to_hub_token", "split_batches", "torchdynamo", "tpu_metrics_debug",
        "use_mps_device", "xpu_backend",
    )
)  # fmt: skip
"""Keys that a release warned of before they went: worth a word where the release is not known."""
SAME = ("no_cuda", "per_gpu_train_batch_size", "per_gpu_eval_batch_size", "push_to_hub_token", "fp16_backend")
"""Keys whose new name means the same."""


@rule(severity="error", formats=FORMATS, outranks=("schema-unknown-key",))
def check(view: RunView) -> Iterator[Found]:
    factory = view.root.framework == "llamafactory" or view.root.format == "llamafactory"
    _, pin = installed(view.run.versions, "transformers")
    if view.root.facts.get("own_loop") or (pin is None and not WARNED & view.root.keys.keys()):
        return
    for gone in departed(view.root, view.run.versions, "transformers", "TrainingArguments"):
        name = gone.entry.name
        if name in ELSEWHERE or (factory and _kept(name)):
            continue
        if pin is None and name not in WARNED:
            continue
        if not gone.certain and gone.pin is not None and gone.pin.key != "transformers":
            continue
        new = gone.key.renamed_to
        yield Found(
            at=gone.entry.key,
            message=f"`{said(gone.entry)}` is gone since transformers {gone.left}"
            + (f", this is {gone.release}" if gone.pin is not None else ""),
            help=IDLE.get(name) or (f"write `{new}`" if new else "remove it"),
            notes=[(gone.pin, "the release")],
            fix=_fix(view, gone),
            severity=None if gone.certain else "info",
        )


def _kept(name: str) -> bool:
    """Whether LLaMA-Factory has an argument of that name of its own."""
    return history.framework("llamafactory").section("TrainingArguments").own(name) is not None


def _fix(view: RunView, gone: Departed) -> Fix | None:
    if view.root.document.syntax not in ("yaml", "json"):
        return None
    new = gone.key.renamed_to
    if gone.entry.name in SAME and new and new not in view.root.keys:
        return rename_key(gone.entry, new, "safe" if gone.certain else "unsafe")
    return remove_line(view.root.document, gone.entry) if gone.entry.name in IDLE and gone.certain else None
