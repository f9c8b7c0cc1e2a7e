"""The key-value cache turned on by hand in a training with activation checkpointing."""

from collections.abc import Iterator

from trainlint.api import Edit, Fix, Found, RunView, Scalar, rule


@rule(severity="info", formats=("python-script",), needs=("checkpointing.kind",))
def check(view: RunView) -> Iterator[Found]:
    kind, script = view.run.checkpointing.kind, view.root
    assigned, calls = script.facts.get("assignments"), script.facts.get("calls")
    if kind is None or kind.value == "none" or not isinstance(assigned, tuple) or not isinstance(calls, tuple):
        return
    trains = [call for call in calls if call.short in ("train", "fit") and "rainer" in call.receiver]
    for one in assigned:
        on = one.target.endswith(".config.use_cache") and one.source == "True" and not one.conditional
        before = trains and one.place < trains[0].place
        again = any(other.target == one.target and other.place > one.place and other is not one for other in assigned)
        if on and before and not again and isinstance(one.value, Scalar):
            yield Found(
                at=one.value,
                message="the key-value cache is of no use in training, and checkpointed blocks can not fill it: "
                "the model warns in every forward pass, or keeps keys and values for nothing",
                help=f"set `{one.target} = False` until training is over",
                notes=[(kind, "checkpointing is on")],
                fix=Fix((Edit(one.value.place, "False"),), "safe", "turn the cache off"),
            )
