"""LoRA targets that no linear layer of the model is named by."""

import re
from collections.abc import Iterator

from trainlint.api import Found, RunView, linear_names, rule

GROUPS = ("attention", "all-linear", "qv", "all")
OTHERS = (
    "embed",
    "lm_head",
    "wte",
    "wpe",
    "word_embeddings",
    "shared",
    "conv",
    "score",
    "classifier",
    "router",
    "gate",
)
"""Beginnings of modules that are no linear layer of a block, and can be adapted too."""
NAME = re.compile(r"[\w.]+")


@rule(severity="error", needs=("adapter.targets", "model.config"))
def check(view: RunView) -> Iterator[Found]:
    targets, config = view.run.adapter.targets, view.run.model.config
    at = view.run.get("adapter.targets")
    if at is None or targets is None or not targets.written or config is None or not isinstance(config.value, dict):
        return
    own_code = "auto_map" in config.value or any("expert" in key for key in config.value)
    if config.origin == "assumed" or own_code:  # a look-alike's shape; modules that only its code names
        return
    names = {name.rpartition(".")[2] for name in linear_names(config.value)}
    wanted = targets.value
    if not names or any(name in GROUPS or not NAME.fullmatch(name) for name in wanted):
        return
    if any(_there(name.rpartition(".")[2], names) for name in wanted):
        return  # PEFT takes what it finds and leaves out the rest
    written = ", ".join(f"`{name}`" for name in wanted)
    known = ", ".join(f"`{name}`" for name in sorted(names))
    kind = view.run.model.type
    yield Found(
        at=at,
        message=f"{written}: no linear layer of {kind.value if kind else 'the model'} is named so",
        help=f"choose among {known}, or adapt all linear layers",
        notes=[(view.run.model.id, "the model")],
    )


def _there(name: str, names: set[str]) -> bool:
    """Whether a layer has the name, or is one of several halves (`wi_0`), or the name may be another module's."""
    return name.startswith(OTHERS) or any(name == known or name.startswith(known + "_") for known in names)
