"""A number such as 1e-5 that YAML 1.1 leaves a text, in a file whose loader does not convert it."""

import re
from collections.abc import Iterator

from trainlint.api import FileView, Found, Scalar, rule, set_value

FLOATS = (
    "adam_beta1",
    "adam_beta2",
    "adam_epsilon",
    "label_smoothing_factor",
    "learning_rate",
    "max_grad_norm",
    "num_train_epochs",
    "warmup_ratio",
    "weight_decay",
)
TEXT = re.compile(r"(?P<sign>[+-]?)(?P<digits>\d+)(?P<rest>\.\d*)?[eE](?P<power>[+-]?\d+)")
CONVERTS = ("_target_", "defaults", "hydra")
"""Keys of loaders that read a float (Hydra, OmegaConf)."""


@rule(severity="warning", on="file", formats=("hf-trainer",))
def check(view: FileView) -> Iterator[Found]:
    fragment = view.fragment
    if view.document.syntax != "yaml" or any(fragment.entry(key) for key in CONVERTS) or "${" in view.document.text:
        return
    for key in FLOATS:
        entry = fragment.entry(key)
        node = entry.value if entry is not None else None
        if not isinstance(node, Scalar) or not node.plain or not isinstance(node.value, str):
            continue
        found = TEXT.fullmatch(node.value)
        if found is None:
            continue
        power = found["power"] if found["power"][0] in "+-" else "+" + found["power"]
        number = f"{found['sign']}{found['digits']}{found['rest'] or '.0'}e{power}"
        yield Found(
            at=node,
            message=f"`{key}: {node.raw}` is a text to YAML 1.1, and `HfArgumentParser` keeps it one",
            help=f"write `{number}`",
            fix=set_value(node, number, "safe"),
        )
