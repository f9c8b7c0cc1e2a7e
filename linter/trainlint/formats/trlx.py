"""trlX: RL and supervised fine-tuning, `train` and `method` beside a model.

Source: trlX 0.7.0, data/configs.py, trainer/accelerate_base_trainer.py, utils/__init__.py.
"""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node, Scalar
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, say
from trainlint.formats.reading import fragment_of, whole
from trainlint.run import Value

NAME = "trlx"
TRAIN = frozenset(("seq_length", "batch_size", "total_steps", "epochs", "pipeline", "trainer", "checkpoint_interval"))
OPTIMIZERS = {"adam": "adamw_torch", "adamw": "adamw_torch", "adamw_8bit_bnb": "adamw_bnb_8bit", "sgd": "sgd"}
METHODS = {"ppoconfig": "ppo", "ilqlconfig": "ilql", "sftconfig": "sft", "rftconfig": "rft"}


def recognise(document: Document, root: Node | None) -> int:
    """`train` with trlX's keys beside `method` and `model.model_path`."""
    if not isinstance(root, Mapping):
        return 0
    train, model, method = root.get("train"), root.get("model"), root.get("method")
    if not isinstance(train, Mapping) or not isinstance(model, Mapping) or not isinstance(method, Mapping):
        return 0
    return 90 if "model_path" in model and len(train.names() & TRAIN) >= 3 else 0


def read(document: Document, root: Node | None) -> Fragment:
    """What the config says; `num_layers_unfrozen` of -1 trains all."""
    fragment = fragment_of(NAME, document, root, framework=NAME, launches=True)
    for key, table, path in (("optimizer.name", OPTIMIZERS, "optimizer.name"), ("method.name", METHODS, "objective")):
        entry = fragment.entry(key)
        if entry is not None and isinstance(entry.value, Scalar):
            word = table.get(str(entry.value.value).lower())
            if word is not None:
                fragment.values[path] = say(NAME, key, entry.value, word)
    layers = fragment.value("model.num_layers_unfrozen")
    count = whole(layers.value) if layers is not None else None
    if layers is not None and count is not None and count >= 0:
        fragment.values["method"] = Value("freeze", "written", layers.key, layers.place, layers.raw, file_format=NAME)
        if count > 0:
            fragment.values["adapter.layers"] = layers
    peft = fragment.entry("model.peft_config")
    if peft is not None and isinstance(peft.value, Mapping):
        fragment.values["method"] = Value("lora", "written", "model.peft_config", peft.key.place, file_format=NAME)
    return fragment


def complete(draft: Draft) -> None:
    """A loop on accelerate: precision and sharding are the launcher's."""
    draft.default("framework", NAME, NAME)
    draft.default("method", "full", NAME)
    draft.default("attention", "sdpa", "transformers >=4.36")


FORMAT = Format(NAME, "trlX config", recognise, read, complete, NAME, NAME)
