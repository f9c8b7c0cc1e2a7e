"""An adapter that is loaded for inference, frozen, and then trained."""

from collections.abc import Iterator

from trainlint.api import Found, Fragment, Mapping, RunView, rule

UNFREEZES = ("set_adapter", "get_peft_model", "merge_and_unload", "add_adapter", "requires_grad_", "load_adapter")
"""Calls after which something else trains, or the adapter does."""
TRAINS = ("requires_grad = True", "requires_grad=True", "inference_mode = False", "inference_mode=False")


@rule(severity="error", formats=("python-script",))
def check(view: RunView) -> Iterator[Found]:
    script = view.root
    calls, trainer = script.facts.get("calls"), script.facts.get("trainer")
    if not isinstance(calls, tuple) or not trainer or any(word in script.document.text for word in TRAINS):
        return
    if any(call.short in UNFREEZES for call in calls):
        return
    for call in calls:
        owner = call.receiver.rpartition(".")[2]
        loads = call.short == "from_pretrained" and owner.startswith(("PeftModel", "AutoPeft"))
        if not loads or call.conditional or call.open or "is_trainable" in call.sources or not call.target:
            continue
        if len(call.positional) > 3 or not _trained(script, call.target):
            continue
        yield Found(
            at=call.place,
            message=f"`{owner}.from_pretrained` loads the adapter frozen, for inference: nothing of it trains",
            help="pass `is_trainable=True`",
        )


def _trained(script: Fragment, name: str) -> bool:
    """Whether a model of that name is given to a trainer, or its parameters to an optimizer."""
    calls = script.facts.get("calls")
    assert isinstance(calls, tuple)
    for call in calls:
        keywords = call.keywords if isinstance(call.keywords, Mapping) else None
        named = call.sources.get("model") == name or (call.short.endswith("Trainer") and call.first == name)
        if call.short.endswith("Trainer") and named and keywords is not None and "peft_config" not in call.sources:
            return True
        if call.first.startswith(f"{name}.parameters("):
            return True
    return False
