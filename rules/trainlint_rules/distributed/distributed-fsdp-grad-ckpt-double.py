"""Activation checkpointing by the trainer under FSDP, which has its own."""

from collections.abc import Iterator

from trainlint.api import Entry, Found, Fragment, RunView, known, rule, said, since

FORMATS = ("hf-trainer", "trl", "llamafactory", "axolotl", "python-script", "shell-launcher")
OWN = ("fsdp_config.fsdp_activation_checkpointing", "fsdp_config.activation_checkpointing")


@rule(severity="error", formats=FORMATS)
def check(view: RunView) -> Iterator[Found]:
    trainer = view.root.entry("gradient_checkpointing")
    on = _true(view.root, "gradient_checkpointing") is not None
    implied = trainer is None and known(view.run.framework) == "trl" and since(view.run.versions, "trl", "0.22")
    own = _own(view)
    if own is not None and (on or implied):
        word = f"`{said(trainer)}`" if trainer is not None and on else "TRL's gradient checkpointing, on by default,"
        yield Found(
            at=trainer if trainer is not None and on else own,
            message=f"{word} and FSDP's `{said(own)}` both recompute the layers, and the Trainer stops",
            help=f"set `gradient_checkpointing` to `false`, `{own.name}` does it without gathering weights twice",
            notes=[(own if on else None, "FSDP's own")],
        )
    elif on and trainer is not None and _first(view) and _full(view):
        yield Found(
            at=trainer,
            message=f"`{said(trainer)}` under FSDP version 1 gathers each layer's weights once more in the backward "
            "pass",
            help="set `activation_checkpointing` in the FSDP config instead, and `gradient_checkpointing: false`",
            notes=[(view.run.sharding.kind, "FSDP is on")],
            severity="info",
        )


def _own(view: RunView) -> Entry | None:
    """FSDP's own flag where it is on and FSDP runs: in the trainer's block, or in accelerate's."""
    for fragment in view.fragments:
        keys: tuple[str, ...] = OWN
        launch = fragment.format == "accelerate"
        if launch and fragment.section == "fsdp_config":
            keys = tuple(key.removeprefix("fsdp_config.") for key in OWN)
        elif str(fragment.written("distributed_type")).upper() != "FSDP" if launch else not fragment.entry("fsdp"):
            continue
        for key in keys:
            if entry := _true(fragment, key):
                return entry
    return None


def _first(view: RunView) -> bool:
    """Whether it is version 1 of FSDP, or may be."""
    kind, possible = view.run.sharding.kind, view.run.possible.get("sharding.kind", ())
    return kind.value == "fsdp" if kind is not None else any(value.value == "fsdp" for value in possible)


def _full(view: RunView) -> bool:
    return str(known(view.run.sharding.strategy)) in ("FULL_SHARD", "HYBRID_SHARD")


def _true(fragment: Fragment, key: str) -> Entry | None:
    return fragment.entry(key) if str(fragment.written(key)).lower() == "true" else None
