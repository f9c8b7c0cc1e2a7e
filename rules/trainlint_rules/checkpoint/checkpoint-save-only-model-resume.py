"""Checkpoints without the training's state, where the state is needed."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, rule, said, since

STATE = ("fsdp_config.fsdp_state_dict_type", "fsdp_config.state_dict_type")


@rule(severity="error", needs=("checkpoint.only_model",))
def check(view: RunView) -> Iterator[Found]:
    saved, kind = view.run.checkpoint, view.run.sharding.kind
    only, best = saved.only_model, saved.best_at_end
    if only is None or not only.value or not only.written:
        return
    engine = (
        ""
        if kind is None
        else "DeepSpeed"
        if kind.value.startswith("zero")
        else "FSDP"
        if kind.value.startswith("fsdp")
        else ""
    )
    if engine and best is not None and best.value:
        yield Found(
            at=only,
            message=f"`{said(only)}` and `{said(best)}` under {engine}: the Trainer refuses the two",
            help=f"drop `{only.key}` or `{best.key}`",
            notes=[(best, "the best is loaded"), (kind, "the engine")],
        )
        return
    sharded = next((one for name in STATE for fragment in view.fragments if (one := fragment.entry(name))), None)
    if engine == "FSDP" and sharded is not None and "SHARDED" in str(getattr(sharded.value, "value", "")):
        known = since(view.run.versions, "transformers", "4.51")
        if known is not False:
            yield Found(
                at=only,
                message=f"`{said(only)}` with `{said(sharded)}`: the Trainer refuses the two",
                help="set the state dict type to `FULL_STATE_DICT`",
                notes=[(sharded.value.place, "the state dict")],
                severity=None if known else "warning",
            )
            return
    resumed = view.root.entry("resume_from_checkpoint")
    if resumed is not None and getattr(resumed.value, "value", None) not in (None, False, "", "false", "False", "null"):
        yield Found(
            at=only,
            message=f"`{said(only)}`, and `{said(resumed)}`: the checkpoints hold no optimizer to resume from",
            help=f"drop `{only.key}`",
            notes=[(resumed.value.place, "resumed here")],
            severity="warning",
        )
