"""A file holds another engine than its name or the option that names it says."""

import re
from collections.abc import Iterator

from trainlint.api import Found, Fragment, RunView, rule

ENGINES = ((re.compile(r"fsdp"), "FSDP"), (re.compile(r"deepspeed|(^|[_.-])ds(?=[_.-])|zero_?-?[0-3]"), "DEEPSPEED"))
STAGE = re.compile(r"(?:zero|stage|(?<![a-z0-9])z)[_-]?([0-3])(?![0-9])")
NAMES = {"FSDP": "FSDP", "DEEPSPEED": "DeepSpeed"}
ENGINE = frozenset(
    (
        "zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu", "bf16", "fp16", "optimizer",
        "scheduler", "overlap_comm", "contiguous_gradients", "reduce_bucket_size", "allgather_bucket_size",
        "reduce_scatter", "sub_group_size", "offload_optimizer", "offload_param", "stage",
    )
)  # fmt: skip
"""Keys of a DeepSpeed file that accelerate's block does not have."""
KINDS = {"deepspeed": "a DeepSpeed config", "accelerate": "an accelerate config"}
WANTED = {"deepspeed": "deepspeed", "accelerate": "accelerate"}
"""Which format a file must have for the option that names it."""


@rule(severity="warning")
def check(view: RunView) -> Iterator[Found]:
    for fragment in view.fragments:
        stem = fragment.file.rpartition("/")[2].rpartition(".")[0].lower()
        if fragment.format == "accelerate":
            yield from _engine(fragment, stem)
            yield from _block(fragment)
        if fragment.format in ("accelerate", "deepspeed"):
            yield from _stage(fragment, stem)
        yield from _options(view, fragment)


def _engine(fragment: Fragment, stem: str) -> Iterator[Found]:
    entry = fragment.entry("distributed_type")
    kind = str(fragment.written("distributed_type")).upper()
    named = {engine for pattern, engine in ENGINES if pattern.search(stem)}
    if entry is not None and kind in ("FSDP", "DEEPSPEED") and named and kind not in named:
        yield Found(
            at=entry.value,
            message=f"`distributed_type: {kind}` in a file that is named after {NAMES[named.pop()]}",
            help="rename the file, or start the other engine",
        )


def _stage(fragment: Fragment, stem: str) -> Iterator[Found]:
    key = "zero_optimization.stage" if fragment.format == "deepspeed" else "deepspeed_config.zero_stage"
    entry, named = fragment.entry(key), set(STAGE.findall(stem))
    stage = fragment.written(key)
    if entry is not None and len(named) == 1 and isinstance(stage, int) and str(stage) not in named:
        yield Found(
            at=entry.value,
            message=f"stage {stage} in a file that is named after stage {named.pop()}",
            help="rename the file, or set the other stage",
        )


def _block(fragment: Fragment) -> Iterator[Found]:
    """DeepSpeed's own keys in accelerate's block, which has other names for a few of them and reads no more."""
    names = [name.partition(".")[2] for name in fragment.keys if name.startswith("deepspeed_config.")]
    foreign = [name for name in names if name in ENGINE or name.startswith("stage3_")]
    if foreign:
        entry = fragment.entry(f"deepspeed_config.{foreign[0]}")
        assert entry is not None
        yield Found(
            at=entry.key,
            message=", ".join(f"`{name}`" for name in foreign)
            + " of a DeepSpeed file in accelerate's `deepspeed_config`, which does not read "
            + ("them" if len(foreign) > 1 else "it"),
            help="put them into a DeepSpeed file, and name it in `deepspeed_config_file`",
        )


def _options(view: RunView, fragment: Fragment) -> Iterator[Found]:
    """What an option names, against what the file turned out to be."""
    for reference in fragment.references:
        wanted = WANTED.get(reference.role)
        if wanted is None:
            continue
        tail = reference.text.removeprefix("./").rpartition("/")[2]
        found = [one for one in view.fragments if one.file.rpartition("/")[2] == tail and one is not fragment]
        if len(found) == 1 and found[0].format in WANTED.values() and found[0].format != wanted:
            yield Found(
                at=reference.place,
                message=f"`{reference.key}` wants {KINDS[wanted]}, `{reference.text}` is {KINDS[found[0].format]}",
                help=f"name {KINDS[wanted]}",
                severity="error",
            )
