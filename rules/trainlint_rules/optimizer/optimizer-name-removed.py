"""An optimizer's name that no release has, or that the installed one has no more or not yet."""

from collections.abc import Iterator
from difflib import get_close_matches

from trainlint.api import Found, RunView, Severity, history, installed, rule, set_value

KEYS = {
    "hf-trainer": "optim",
    "trl": "optim",
    "llamafactory": "optim",
    "axolotl": "optimizer",
    "python-script": "optim",
    "shell-launcher": "optim",
}
SETTLED = frozenset(
    (
        "adafactor", "adagrad", "adamw_8bit", "adamw_bnb_8bit", "adamw_torch", "adamw_torch_fused", "lion_8bit",
        "paged_adamw_32bit", "paged_adamw_8bit", "paged_lion_8bit", "sgd",
    )
)  # fmt: skip
"""Names that every release has."""
OWN = ("muon", "badam", "apollo", "adam_mini", "galore_adamw")
"""Names that LLaMA-Factory and scripts around the Trainer take themselves."""


@rule(severity="error", formats=tuple(KEYS))
def check(view: RunView) -> Iterator[Found]:
    key = KEYS.get(view.root.format, "optim")
    entry, name = view.root.entry(key), view.root.written(key)
    if (
        entry is None
        or not isinstance(name, str)
        or not name
        or "." in name
        or "$" in name
        or name in OWN
        or name in SETTLED
    ):
        return
    names = history.framework("transformers").section("enum:OptimizerNames")
    if view.root.format == "axolotl" and name in history.framework("axolotl").section("enum:CustomSupportedOptimizers"):
        return
    wanted, pin = installed(view.run.versions, "transformers")
    release = f"transformers {pin.value}" if pin is not None and pin.key == "transformers" else "transformers"
    item = names.own(name)
    severity: Severity = "error"
    if item is None:
        if view.root.format not in ("hf-trainer", "trl", "llamafactory", "axolotl"):
            return
        close = get_close_matches(name.lower(), list(names), 1, 0.75)
        message = f"`{name}` is no optimizer of the Trainer" + (f", did you mean `{close[0]}`" if close else "")
        new = close[0] if close else ""
        severity = "error" if close else "warning"
    elif item.known_in(wanted) is False:
        gone = item.removed_in is not None
        new = item.renamed_to or ""
        since = item.removed_in if gone else item.first_seen
        message = f"`{name}` {'is gone since' if gone else 'comes with'} transformers {since}, this is {release}"
    elif item.removed_in is not None and wanted is None:
        new, severity = item.renamed_to or "", "warning"
        message = f"`{name}` is gone since transformers {item.removed_in}"
    else:
        return
    yield Found(
        at=entry,
        message=message,
        help=f"write `{new}`" if new else "see `optim` in the Trainer's documentation for the names it takes",
        notes=[(pin, "the release")],
        fix=set_value(entry.value, new, "unsafe" if item is None else "safe") if new else None,
        severity=severity,
    )
