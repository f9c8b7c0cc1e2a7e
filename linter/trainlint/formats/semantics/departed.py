"""Keys that a release took away: which of those written are gone in the releases that a run may use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainlint.documents import Entry
from trainlint.facts import history
from trainlint.facts.history import Key
from trainlint.facts.versions import VersionRange, parse
from trainlint.formats.fragment import Fragment
from trainlint.run import Value

ASKING = ("trl", "llamafactory", "axolotl")
"""Frameworks whose releases say which transformers they need."""

LEFT: Mapping[tuple[str, str], frozenset[str]] = {
    ("transformers", "TrainingArguments"): frozenset(
        (
            "adafactor", "dispatch_batches", "evaluation_strategy", "fp16_backend", "fp16_opt_level",
            "fsdp_min_num_params", "fsdp_transformer_layer_cls_to_wrap", "group_by_length",
            "half_precision_backend", "include_inputs_for_metrics", "include_tokens_per_second", "jit_mode_eval",
            "logging_dir", "mp_parameters", "no_cuda", "overwrite_output_dir", "past_index",
            "per_gpu_eval_batch_size", "per_gpu_train_batch_size", "push_to_hub_model_id",
            "push_to_hub_organization", "push_to_hub_token", "ray_scope", "save_safetensors", "sharded_ddp",
            "split_batches", "torchdynamo", "tp_size", "tpu_metrics_debug", "tpu_num_cores", "use_ipex",
            "use_legacy_prediction_loop", "use_mps_device", "warmup_ratio", "xpu_backend",
        )
    ),
    ("trl", "SFTConfig"): frozenset(
        (
            "chars_per_token", "dataset_batch_size", "max_seq_length", "num_of_sequences", "use_liger",
        )
    ),
    ("trl", "DPOConfig"): frozenset(
        (
            "base_model_attribute_name", "force_use_ref_model", "generate_during_eval", "is_encoder_decoder",
            "label_pad_token_id", "max_completion_length", "max_prompt_length", "max_target_length",
            "model_adapter_name", "padding_value", "ref_adapter_name", "ref_model_init_kwargs", "reference_free",
            "rpo_alpha", "tools", "use_liger_loss", "use_logits_to_keep", "use_num_logits_to_keep",
        )
    ),
    ("trl", "GRPOConfig"): frozenset(
        (
            "max_prompt_length", "use_liger_loss", "vllm_device", "vllm_dtype", "vllm_enable_prefix_caching",
            "vllm_guided_decoding_regex", "vllm_max_model_len", "wandb_log_unique_prompts",
        )
    ),
}  # fmt: skip
"""The keys of a section that some release does not have any more: a config without them needs no history."""


@dataclass(frozen=True, slots=True)
class Departed:
    """A written key that some release does not have any more.

    `certain`: none of the releases that may run has it; False where nothing is known of them or some have it. `pin`
    says which they are, None where nobody does; `release` is the same for messages.
    """

    entry: Entry
    key: Key
    certain: bool
    pin: Value[str] | None
    release: str

    @property
    def left(self) -> str:
        """The first minor release without the key: `0.20`."""
        return ".".join((self.key.removed_in or "").split(".")[:2])


def installed(versions: Mapping[str, Value[str]], package: str) -> tuple[VersionRange | None, Value[str] | None]:
    """The releases of a package that a run may use, and what says so: its pin, or that of a framework that needs it."""
    pin = versions.get(package)
    if pin is not None:
        return parse(pin.value), pin
    for asking in ASKING if package == "transformers" else ():
        wanted = parse(versions[asking].value) if asking in versions else None
        if wanted is not None:
            return history.framework(asking).companion(package, wanted), versions[asking]
    return None, None


def since(versions: Mapping[str, Value[str]], package: str, release: str) -> bool | None:
    """Whether a run uses that release of a package or a later one; None where both are possible."""
    from trainlint.formats.semantics.release import Release

    return Release(installed(versions, package)[0]).since(release)


def departed(
    fragment: Fragment, versions: Mapping[str, Value[str]], framework: str, *sections: str
) -> Iterator[Departed]:
    """The top-level keys of a fragment that went with some release and may be gone, in the order of the file."""
    left = {section: LEFT[framework, section] & fragment.keys.keys() for section in sections}
    if not any(left.values()):
        return
    known = history.framework(framework)
    wanted, pin = installed(versions, framework)
    for name, entry in fragment.keys.items():
        for section in sections:
            key = known.section(section).get(name) if name in left[section] else None
            if key is None or key.framework != framework or key.removed_in is None or key.known_in(wanted) is True:
                continue
            certain = wanted is not None and key.known_in(wanted) is False and _went(key, wanted)
            if wanted is not None and not certain and key.known_in(wanted) is False:
                continue  # it is still to come
            release = framework if pin is None else f"{framework} {pin.value}"
            if pin is not None and pin.key != framework:
                release = f"the {framework} that {pin.key} {pin.value} needs"
            yield Departed(entry, key, certain, pin, release)
            break


def _went(key: Key, wanted: VersionRange) -> bool:
    low, gone = wanted.lowest, parse(f">={key.removed_in}")
    return low is None or gone is None or low in gone
