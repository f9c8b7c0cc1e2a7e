"""Keys that a framework does not have: misspelt, removed, not yet there, or never known in any release.

With known versions a key is judged against exactly these releases; with unknown ones only a key that no release ever
had counts. Scripts on the Hugging Face Trainer add arguments of their own, so there a key that was never known counts
only when it is a slip away from one that is (`misspelt`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from trainlint.documents import Entry
from trainlint.facts import history
from trainlint.facts.history import Key
from trainlint.facts.versions import VersionRange, parse
from trainlint.formats.fragment import Fragment
from trainlint.formats.reading import schema
from trainlint.formats.semantics.release import release
from trainlint.formats.slips import Slips
from trainlint.run import Value

Kind = Literal["misspelt", "removed", "later", "never"]
Consequence = Literal["refused", "ignored", "open"]


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key that the framework does not read.

    `kind`: *misspelt* (never known, a slip away from `suggestion`), *removed* or *later* (known, in none of the
    releases that may run; `key` has since when, until when and its new name), *never* (known in no release).
    `suggestion`: what to write instead, or "". `consequence`: the loader *refused* the file, the key is *ignored*, or
    *open* where a script decides. `framework`: whose history says so.
    """

    entry: Entry
    dotted: str
    kind: Kind
    suggestion: str
    consequence: Consequence
    framework: str
    key: Key | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """Where keys stand (a dotted prefix), whose they are, and what the loader does with others.

    `sections`: those of the history, none for all. `strict`: every key that is not known counts (*pinned*: only where
    the history covers the installed releases), else slips alone. `since`: the first release that refuses.
    """

    prefix: str
    framework: str
    sections: tuple[str, ...]
    consequence: Consequence
    strict: bool | Literal["pinned"] = True
    since: str = ""


TRL_SCRIPT = ("ModelConfig", "ScriptArguments", "DatasetMixtureConfig", "SFTScriptArguments", "DPOScriptArguments")
SCOPES: Mapping[str, tuple[Scope, ...]] = {
    "hf-trainer": (
        Scope("", "transformers", ("TrainingArguments", "Seq2SeqTrainingArguments"), "open", strict=False),
        Scope("", "trl", TRL_SCRIPT, "open", strict=False),
    ),
    "trl": (Scope("", "trl", (), "open", strict=False),),
    "llamafactory": (
        Scope("", "llamafactory", (), "refused", strict="pinned"),
        Scope("", "transformers", ("TrainingArguments", "Seq2SeqTrainingArguments"), "refused", strict="pinned"),
    ),
    "axolotl": (Scope("", "axolotl", (), "ignored", strict=False),),
    "mlx-lm": (Scope("", "mlx-lm", (), "ignored"),),
    "accelerate": (
        Scope("", "accelerate", ("BaseConfig", "ClusterConfig", "SageMakerConfig"), "refused"),
        Scope("fsdp_config.", "accelerate", ("fsdp_config",), "ignored", strict=False),
        Scope("deepspeed_config.", "accelerate", ("deepspeed_config",), "ignored", strict=False),
    ),
    "deepspeed": (
        Scope("", "deepspeed", ("",), "ignored"),
        Scope("zero_optimization.", "deepspeed", ("zero_optimization",), "refused"),
        Scope("zero_optimization.offload_optimizer.", "deepspeed", ("zero_optimization.offload_optimizer",), "refused"),
        Scope("zero_optimization.offload_param.", "deepspeed", ("zero_optimization.offload_param",), "refused"),
        Scope("fp16.", "deepspeed", ("fp16",), "refused", since="0.17"),
        Scope("bf16.", "deepspeed", ("bf16",), "refused", since="0.17"),
    ),
    "peft-adapter": (Scope("", "peft", (), "ignored"),),
    "litgpt": (
        Scope("", "litgpt", (), "refused", strict=False),
        Scope("train.", "litgpt", ("TrainArgs",), "refused", strict=False),
        Scope("eval.", "litgpt", ("EvalArgs",), "refused", strict=False),
    ),
    "lightning": (Scope("trainer.", "lightning", ("Trainer",), "refused", strict=False),),
    "ms-swift": (
        Scope("", "ms-swift", (), "refused", strict=False),
        Scope("", "transformers", ("TrainingArguments", "Seq2SeqTrainingArguments"), "refused", strict=False),
    ),
}
"""Formats whose keys have a history. Loaders: accelerate and DeepSpeed's sections raise, axolotl (pydantic without an
extra policy), mlx-lm and DeepSpeed's top level say nothing; LLaMA-Factory's, ms-swift's and jsonargparse raise."""

OTHER_LAYOUT: Mapping[str, frozenset[str]] = {
    "llamafactory": frozenset(("model", "train_dataset", "tensor_model_parallel_size", "pipeline_model_parallel_size"))
}
"""Keys of layouts whose history was not read: LLaMA-Factory's second generation, and its Megatron arguments."""

SIBLINGS = ("transformers", "trl", "llamafactory", "axolotl", "peft", "accelerate", "unsloth", "ms-swift")
"""Frameworks whose names a script may have borrowed: a key of theirs is no slip."""

RECIPES = frozenset(
    (
        "dataset_configs", "dataset_splits", "dataset_mixer", "dataset_mixer_list", "chat_template", "system_prompt",
        "reward_funcs", "model_code_revision", "tokenizer_name_or_path", "tokenizer_name", "use_slow_tokenizer",
        "num_epochs", "use_lora", "lora_rank", "use_flash_attn", "use_flash_attention_2", "max_train_samples",
        "max_train_steps", "preprocessing_num_workers", "model_name_or_path", "config_name", "env", "run_name",
    )
)  # fmt: skip
"""Arguments that widely used scripts add."""


def unknown_keys(fragment: Fragment, versions: Mapping[str, Value[str]]) -> list[UnknownKey]:
    """The keys of a file that its framework does not have in the releases that may run, in the order of the file."""
    found = [unknown for scope in _by_prefix(fragment) for unknown in _in_scope(fragment, scope, versions)]
    return sorted(found, key=lambda unknown: unknown.entry.key.place[1:3])


def _by_prefix(fragment: Fragment) -> Iterator[tuple[Scope, ...]]:
    """The format's scopes, those of one prefix together: a key of any of them is known."""
    scopes = SCOPES.get(fragment.format, ())
    if OTHER_LAYOUT.get(fragment.format, frozenset()) & fragment.keys.keys():
        scopes = ()
    if fragment.format == "accelerate" and fragment.section == "fsdp_config":
        scopes = (Scope("", "transformers", ("fsdp_config",), "open", strict=False),)
    if fragment.format == "peft-adapter":
        scopes = tuple(Scope("", "peft", (fragment.section,), "ignored") for _ in scopes if fragment.section)
    for prefix in dict.fromkeys(scope.prefix for scope in scopes):
        yield tuple(scope for scope in scopes if scope.prefix == prefix)


def _in_scope(
    fragment: Fragment, scopes: tuple[Scope, ...], versions: Mapping[str, Value[str]]
) -> Iterator[UnknownKey]:
    prefix = scopes[0].prefix
    usual = _usual(fragment.format) if not versions else frozenset()
    asked = None
    for dotted, entry in fragment.keys.items():
        name = dotted.removeprefix(prefix)
        if not dotted.startswith(prefix) or "." in name or "[" in name or entry.merged or dotted in usual:
            continue
        if asked is None:
            asked = _installed(versions)
        unknown = _judge(fragment, entry, dotted, name, scopes, asked, versions)
        if unknown is not None:
            yield unknown


def _judge(
    fragment: Fragment,
    entry: Entry,
    dotted: str,
    name: str,
    scopes: tuple[Scope, ...],
    installed: Mapping[str, VersionRange],
    versions: Mapping[str, Value[str]],
) -> UnknownKey | None:
    gone: Key | None = None
    for scope in scopes:
        known, key = _known(scope, _sections(fragment, scope), name, installed)
        if known is not False:
            return None
        gone = gone or key
    scope = scopes[0]
    consequence = _consequence(scope, versions)
    if gone is not None:
        kind: Kind = "removed" if _was(gone, installed) else "later"
        return UnknownKey(entry, dotted, kind, gone.renamed_to or "", consequence, gone.framework, gone)
    if name in RECIPES or not entry.key.raw:
        return None
    meant = _slips(scopes).meant(name)
    if meant is not None and scope.prefix + meant in fragment.keys:
        meant = None
    if meant is not None and (scope.strict is True or not _borrowed(name)):
        return UnknownKey(entry, dotted, "misspelt", meant, consequence, scope.framework)
    if not _strict(scope, installed) or name.startswith(("_", "x-")):
        return None
    return UnknownKey(entry, dotted, "never", "", consequence, scope.framework)


def _strict(scope: Scope, installed: Mapping[str, VersionRange]) -> bool:
    if scope.strict == "pinned":
        framework = history.framework(scope.framework)
        return framework.covers(installed.get(framework.package))
    return scope.strict


def _installed(versions: Mapping[str, Value[str]]) -> dict[str, VersionRange]:
    """The versions as ranges; what can not be read is unknown."""
    ranges = {name: parse(str(value.value)) for name, value in versions.items()}
    return {name: wanted for name, wanted in ranges.items() if wanted is not None}


def _sections(fragment: Fragment, scope: Scope) -> tuple[str, ...]:
    """The sections of the history that count: for TRL those of the objective, where it is known."""
    if scope.framework == "trl" and not scope.sections and fragment.section:
        return (fragment.section, *TRL_SCRIPT)
    return scope.sections or _all_sections(scope.framework)


@cache
def _all_sections(name: str) -> tuple[str, ...]:
    return tuple(
        section for section in history.framework(name).sections if not section.startswith(("enum:", "kwargs:"))
    )


def _known(
    scope: Scope, sections: tuple[str, ...], name: str, installed: Mapping[str, VersionRange]
) -> tuple[bool | None, Key | None]:
    """Whether any section has the key in the installed versions (None: maybe), and the key where none has it."""
    framework = history.framework(scope.framework)
    lost: Key | None = None
    for section in sections:
        if section not in framework.raw:
            continue
        keys = framework.section(section)
        key = keys.lookup(name, installed)
        if key is None:
            continue
        if not installed or keys.known_in(name, installed) is not False:
            return True, None
        lost = lost or key
    if lost is None and not scope.sections and sections != _all_sections(scope.framework):
        others = (framework.section(section) for section in _all_sections(scope.framework))
        if any(name in section for section in others):
            return None, None  # another trainer's argument: no slip, and not ours to judge
    return False, lost


def _was(key: Key, installed: Mapping[str, VersionRange]) -> bool:
    """Whether a key that is not there went (else it is still to come)."""
    if key.removed_in is None:
        return False
    wanted = installed.get(history.framework(key.framework).package)
    low = wanted.lowest if wanted is not None else None
    removed = parse(f">={key.removed_in}")
    return low is None or removed is None or low in removed


def _consequence(scope: Scope, versions: Mapping[str, Value[str]]) -> Consequence:
    if scope.since and release(versions, scope.framework).since(scope.since) is not True:
        return "ignored" if release(versions, scope.framework).since(scope.since) is False else "open"
    return scope.consequence


@cache
def _usual(format_name: str) -> frozenset[str]:
    """Keys that need no history: those of the format's schema."""
    names = {"hf-trainer": ("hf-trainer",), "trl": ("hf-trainer", "trl")}.get(format_name, ())
    return frozenset(key for name in names for key in schema(name)["properties"])


@cache
def _slips(scopes: tuple[Scope, ...]) -> Slips:
    """The keys that a slip may have meant. Data set and model arguments differ from script to script: not those."""
    names: set[str] = set()
    for scope in scopes:
        for section in scope.sections or _all_sections(scope.framework):
            if section in history.framework(scope.framework).raw and section not in TRL_SCRIPT:
                names.update(history.framework(scope.framework).section(section))
    return Slips(name for name in names if all(scope.strict for scope in scopes) or not name.startswith("dataset"))


def _borrowed(name: str) -> bool:
    """Whether another framework has a key of that name."""
    for sibling in SIBLINGS:
        framework = history.framework(sibling)
        if any(name in keys["keys"] for keys in framework.raw.values()):
            return True
    return False
