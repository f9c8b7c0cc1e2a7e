"""A Lightning Trainer that is told to accumulate or clip for a module that optimizes by hand."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, Scalar, rule

REFUSED = {"accumulate_grad_batches": 1, "gradient_clip_val": 0}
"""Arguments that the Trainer refuses in manual optimization when they are above these."""


@rule(severity="error", formats=("python-script",))
def check(view: RunView) -> Iterator[Found]:
    script = view.root
    assigned, calls = script.facts.get("assignments"), script.facts.get("calls")
    if not isinstance(assigned, tuple) or not isinstance(calls, tuple):
        return
    manual = [one for one in assigned if one.target == "self.automatic_optimization" and one.source == "False"]
    if len(manual) != 1 or manual[0].conditional or script.document.text.count("LightningModule)") != 1:
        return
    for call in calls:
        if call.short != "Trainer" or not call.name.startswith(("lightning", "pytorch_lightning")):
            continue
        for name, least in REFUSED.items():
            entry = call.keywords.entry(name)
            value = entry.value.value if entry is not None and isinstance(entry.value, Scalar) else None
            if entry is not None and isinstance(value, int | float) and value > least:
                yield Found(
                    at=entry,
                    message=f"`{name}={value}` for a module with `automatic_optimization = False`: Lightning raises",
                    help=f"drop `{name}`, and do it in `training_step`",
                    notes=[(manual[0].place, "optimizes by hand")],
                )
