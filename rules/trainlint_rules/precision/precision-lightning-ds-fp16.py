"""Lightning's precision and the 16-bit blocks of its DeepSpeed config that disagree."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, rule


@rule(severity="warning", formats=("lightning",))
def check(view: RunView) -> Iterator[Found]:
    engine = view.fragment("deepspeed")
    if engine is None:
        return
    asked = view.root.value("trainer.precision")
    word = str(asked.value) if asked is not None else "32-true"
    half = {"16": "fp16", "bf": "bf16"}.get(word[:2])
    for block, other in (("fp16", "bf16"), ("bf16", "fp16")):
        enabled = engine.value(f"{block}.enabled")
        if enabled is None or not isinstance(enabled.value, bool):
            continue
        spot = asked or enabled
        said = f"`{asked.key}: {asked.raw}`" if asked is not None else "float32, Lightning's default,"
        if enabled.value and half == other:
            both = f"{said} beside `{block}` in the DeepSpeed config: Lightning turns `{other}` on as well"
            message, severity = f"{both}, and DeepSpeed refuses both", "error"
        elif enabled.value and half is None:
            message = f"{said} beside `{block}` in the DeepSpeed config: the model is cast, its inputs are not"
            severity = "warning"
        elif not enabled.value and half == block:
            message = f"{said} is lost: the DeepSpeed config has a `{block}` block of its own, which is off"
            severity = "warning"
        else:
            continue
        yield Found(
            at=spot,
            message=message,
            help="set `precision` in the Trainer and leave `fp16` and `bf16` out of the DeepSpeed config",
            notes=[(enabled, "the DeepSpeed config")] if spot is asked else [],
            severity="error" if severity == "error" else "warning",
        )
