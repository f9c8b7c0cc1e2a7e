"""Axolotl: one YAML per run, over the Hugging Face Trainer. What is peculiar to it: `bf16` also casts the weights.

Source: axolotl 0.5 to 0.19, utils/config/__init__.py, loaders/model.py, core/builders/. Its loader is YAML's
safe_load and pydantic, so unknown keys vanish and `1e-5` becomes a float in the end.
"""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node, Scalar, Sequence
from trainlint.formats.deepspeed import read_block
from trainlint.formats.format import Format
from trainlint.formats.fragment import Fragment, Reference, say
from trainlint.formats.reading import fragment_of, listed, truth
from trainlint.formats.semantics.axolotl import complete
from trainlint.formats.semantics.sharding import fsdp_block, trainer_fsdp
from trainlint.run import Value

NAME = "axolotl"

KEYS = frozenset(
    (
        "adapter", "datasets", "eval_sample_packing", "lora_r", "lora_target_linear", "micro_batch_size", "num_epochs",
        "pretraining_dataset", "rl", "sample_packing", "saves_per_epoch", "sequence_len", "test_datasets",
        "val_set_size",
    )
)  # fmt: skip
"""Keys that a config has beside `base_model`."""
ATTENTION = {
    "flash_attention": "flash",
    "flex_attention": "flex",
    "sdp_attention": "sdpa",
    "xformers_attention": "xformers",
    "eager_attention": "eager",
}
"""The flags, in the order in which the first that is on counts."""
PATTERN = frozenset("()[]|*+?\\^$")


def recognise(document: Document, root: Node | None) -> int:
    """`base_model` beside what else a run needs."""
    if not isinstance(root, Mapping) or not isinstance(root.get("base_model"), Scalar):
        return 0
    own = len(root.names() & KEYS)
    return 95 if own >= 3 else 80 if own == 2 else 55 if own else 0


def read(document: Document, root: Node | None) -> Fragment:
    """What the config says."""
    fragment = fragment_of(NAME, document, root, framework=NAME, section="AxolotlInputConfig", launches=True)
    _method(fragment)
    _flags(fragment)
    _loss(fragment)
    _data(fragment)
    trainer_fsdp(fragment)
    for key, adopt in (("fsdp_config", fsdp_block), ("deepspeed", read_block)):
        entry = fragment.entry(key)
        if entry is not None and isinstance(entry.value, Mapping):
            adopt(fragment, entry.value, f"{key}." if key == "fsdp_config" else key)
            fragment.facts[key] = True
    return fragment


def _method(fragment: Fragment) -> None:
    """Adapter, quantization of the base, targets."""
    adapter = fragment.entry("adapter")
    word = adapter.value.value if adapter is not None and isinstance(adapter.value, Scalar) else None
    put = fragment.values
    if adapter is None or not isinstance(adapter.value, Scalar) or not isinstance(word, str):
        frozen = fragment.entry("unfrozen_parameters")
        if frozen is not None and isinstance(frozen.value, Sequence) and frozen.value.items:
            put["method"] = Value("freeze", "written", "unfrozen_parameters", frozen.value.place, file_format=NAME)
        return
    bits = 4 if truth(fragment.written("load_in_4bit")) else 8 if truth(fragment.written("load_in_8bit")) else 0
    if bits:
        flag = fragment.value(f"load_in_{bits}bit")
        assert flag is not None
        put["quantization.bits"] = Value(bits, "written", flag.key, flag.place, flag.raw, file_format=NAME)
    put["method"] = say(NAME, "adapter", adapter.value, "qlora" if bits else "lora")
    if word not in ("lora", "qlora"):
        put["adapter.kind"] = say(NAME, "adapter", adapter.value, word)
    _targets(fragment)


def _targets(fragment: Fragment) -> None:
    entry, linear = fragment.entry("lora_target_modules"), fragment.value("lora_target_linear")
    names = listed(entry.value) if entry is not None and not isinstance(entry.value, Mapping) else None
    place, key = (entry.value.place if entry is not None else None), "lora_target_modules"
    if names is not None and isinstance(entry.value, Scalar) and PATTERN & set(str(entry.value.value)):  # type: ignore[union-attr]
        names = None
        fragment.facts["pattern"] = True
    if linear is not None and truth(linear.value):
        names = (*(names or ()), "all-linear")
        place, key = linear.place, "lora_target_linear"
    if names:
        fragment.values["adapter.targets"] = Value(names, "written", key, place, file_format=NAME)


def _flags(fragment: Fragment) -> None:
    """Precision and attention, each by one of several flags."""
    bf16 = fragment.value("bf16")
    if bf16 is not None and bf16.value != "auto":
        on = truth(bf16.value)
        if bf16.value == "full" or on is not None:
            fragment.values["precision.bf16"] = Value(
                bf16.value == "full" or on, "written", "bf16", bf16.place, bf16.raw, file_format=NAME
            )
        fragment.facts["full"] = bf16.value == "full"
    if fragment.written("gradient_checkpointing") in ("offload", "offload_disk", "unsloth"):
        flag = fragment.value("gradient_checkpointing")
        assert flag is not None
        fragment.values.setdefault(
            "activation_offload", Value(True, "written", flag.key, flag.place, flag.raw, file_format=NAME)
        )
    for name, kernel in ATTENTION.items():
        flag = fragment.value(name)
        if flag is not None and truth(flag.value):
            fragment.values.setdefault(
                "attention", Value(kernel, "written", name, flag.place, flag.raw, file_format=NAME)
            )
    for name in ("reward_model", "process_reward_model"):
        flag = fragment.value(name)
        if flag is not None and truth(flag.value):
            fragment.values.setdefault(
                "objective", Value("reward", "written", name, flag.place, flag.raw, file_format=NAME)
            )


def _loss(fragment: Fragment) -> None:
    """Fused losses and kernels come through plugins, and do nothing where theirs is not listed."""
    entry = fragment.entry("plugins")
    plugins = listed(entry.value) if entry is not None and not isinstance(entry.value, Mapping) else None
    names = {name.rpartition(".")[2] for name in plugins or ()}

    def on(key: str, default: bool = False) -> bool:
        said = truth(fragment.written(key))
        return default if said is None else said

    def put(path: str, word: str, key: str) -> None:
        place = fragment.keys[key].value.place
        fragment.values[path] = Value(word, "written", key, place, file_format=NAME)

    if "LigerPlugin" in names:
        if any(on(key) for key in fragment.keys if key.startswith("liger_")):
            put("kernels", "liger", "plugins")
        if on("liger_fused_linear_cross_entropy"):
            put("loss", "liger", "liger_fused_linear_cross_entropy")
    if "CutCrossEntropyPlugin" in names and on("cut_cross_entropy", True):
        put("loss", "cut-ce", "plugins")
    if on("chunked_cross_entropy"):
        put("loss", "chunked", "chunked_cross_entropy")


def _data(fragment: Fragment) -> None:
    """Names and files of the data sets, and whether they are conversations."""
    names: list[str] = []
    place = None
    for key in ("datasets", "pretraining_dataset", "test_datasets"):
        entry = fragment.entry(key)
        node = entry.value if entry is not None else None
        for item in node.items if isinstance(node, Sequence) else (node,):
            path = item.get("path") if isinstance(item, Mapping) else item
            if not isinstance(path, Scalar) or not isinstance(path.value, str) or not path.value:
                continue
            fragment.references.append(Reference("dataset", path.value, path.place, f"{key}.path"))
            if key != "test_datasets":
                names.append(path.value)
                place = place or path.place
            if isinstance(item, Mapping):
                _chat(fragment, item)
    if names:
        fragment.values["data.names"] = Value(tuple(names), "written", "datasets", place, file_format=NAME)
    if (
        "pretraining_dataset" in fragment.keys
        and fragment.written("pretraining_dataset") is not False
        and not fragment.entry("datasets")
    ):
        entry = fragment.keys["pretraining_dataset"]
        fragment.values.setdefault(
            "objective", Value("pretrain", "written", "pretraining_dataset", entry.value.place, file_format=NAME)
        )


def _chat(fragment: Fragment, item: Mapping) -> None:
    kind = item.get("type")
    if (
        isinstance(kind, Scalar)
        and isinstance(kind.value, str)
        and kind.value.startswith(("chat_template", "sharegpt"))
    ):
        fragment.values.setdefault("data.chat", say(NAME, "datasets.type", kind, True))


FORMAT = Format(
    name=NAME,
    title="Axolotl config",
    recognise=recognise,
    read=read,
    complete=complete,
    framework=NAME,
    package=NAME,
)
