"""One config asks for FSDP and for DeepSpeed."""

from collections.abc import Iterator

from trainlint.api import Entry, Found, Fragment, Mapping, RunView, Scalar, Sequence, rule, said

FORMATS = ("hf-trainer", "trl", "llamafactory", "axolotl", "python-script", "shell-launcher")
ACCELERATE = "distributed_type"


@rule(severity="error", formats=FORMATS)
def check(view: RunView) -> Iterator[Found]:
    root = view.root
    engine, fsdp = _asked(root, "deepspeed"), _asked(root, "fsdp")
    block = _asked(root, "fsdp_config") if root.format == "axolotl" and fsdp is None else None
    if engine is not None and block is not None:
        yield Found(
            at=block,
            message=f"`{block.name}` beside `{engine.name}`: Axolotl sets both engines up, and only one can train",
            help=f"keep one of `{block.name}` and `{engine.name}`",
            notes=[(engine, "the other one")],
            severity="warning",
        )
    if engine is not None and fsdp is not None:
        yield Found(
            at=fsdp,
            message=f"`{fsdp.name}` beside `{engine.name}`: only one engine can train, and the trainer stops at both",
            help=f"keep one of `{fsdp.name}` and `{engine.name}`",
            notes=[(engine, "the other one")],
        )
        return
    launch = view.fragment("accelerate")
    kind = launch.entry(ACCELERATE) if launch is not None else None
    if launch is None or kind is None or root.format == "axolotl":
        return
    word = str(launch.written(ACCELERATE)).upper()
    mine = engine if word == "FSDP" else fsdp if word == "DEEPSPEED" else None
    if mine is not None:
        yield Found(
            at=mine,
            message=f"`{mine.name}` here, and `{said(kind)}` for accelerate: two engines for one model",
            help=f"keep one: take `{mine.name}` out, or launch with another accelerate config",
            notes=[(kind, "accelerate's engine")],
            severity="error" if word == "DEEPSPEED" else "warning",
        )


def _asked(fragment: Fragment, name: str) -> Entry | None:
    """The entry where it asks for something: no placeholder, no empty list, no `false`."""
    entry = fragment.entry(name)
    match entry.value if entry is not None else None:
        case None:
            return None
        case Scalar(value=value):
            return entry if value and str(value).strip().lower() not in ("false", "none", "null", "no") else None
        case Sequence(items=items):
            return entry if items else None
        case Mapping(entries=entries):
            return entry if entries else None
