"""Under ZeRO-3 a saved model holds no weights, because they are not gathered."""

from collections.abc import Iterator

from trainlint.api import Entry, Found, Fragment, RunView, Scalar, known, rule, set_value

FLAGS = ("stage3_gather_16bit_weights_on_model_save", "stage3_gather_fp16_weights_on_model_save")
ACCELERATE = "zero3_save_16bit_model"
TRAINERS = ("transformers", "trl", "llamafactory", "axolotl", "ms-swift")


@rule(severity="warning")
def check(view: RunView) -> Iterator[Found]:
    found = _engine(view)
    if found is None:
        return
    fragment, stage, flags = found
    flag = next((entry for key in flags if (entry := fragment.entry(key)) is not None), None)
    name = flags[0].rpartition(".")[2]
    outcome = "a saved model has no weights, they stay in the partitions of the checkpoint"
    if flag is not None and isinstance(flag.value, Scalar) and flag.value.value is False:
        yield Found(
            at=flag,
            message=f"`{flag.name}: {flag.value.raw}`: {outcome}",
            help="set it to `true`, or put the weights together with `zero_to_fp32.py`",
            notes=[(stage, "ZeRO-3 splits them")],
            fix=set_value(flag.value, "true", "safe"),
        )
    elif flag is None and str(known(view.run.framework)) in TRAINERS and known(view.run.method) == "full":
        yield Found(
            at=stage,
            message=f"stage 3 without `{name}`, which is off by default: {outcome}",
            help=f"set `{name}` to `true`, or put the weights together with `zero_to_fp32.py`",
            severity="info",
        )


def _engine(view: RunView) -> tuple[Fragment, Entry, tuple[str, ...]] | None:
    """Where ZeRO-3 is asked for: the fragment, its stage, and the keys of the flag, dotted."""
    for fragment in view.fragments:
        prefix = "" if fragment.format == "deepspeed" else "deepspeed."
        if fragment.format == "deepspeed" or fragment.entry("deepspeed.zero_optimization") is not None:
            stage = fragment.entry(f"{prefix}zero_optimization.stage")
            if stage is not None and fragment.written(f"{prefix}zero_optimization.stage") == 3:
                return fragment, stage, tuple(f"{prefix}zero_optimization.{flag}" for flag in FLAGS)
            return None
    accelerate = view.fragment("accelerate")
    stage = accelerate.entry("deepspeed_config.zero_stage") if accelerate is not None else None
    if accelerate is None or stage is None or known(view.run.sharding.kind) != "zero3":
        return None
    return accelerate, stage, (f"deepspeed_config.{ACCELERATE}",)
