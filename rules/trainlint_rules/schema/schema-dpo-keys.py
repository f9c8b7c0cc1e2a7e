"""Keys of a DPO config, or arguments of its trainer, that TRL took away."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, departed, history, installed, rename_key, rule, said, setup_of

FORMATS = ("trl", "python-script", "shell-launcher")
CONFIG, TRAINER = "DPOConfig", "kwargs:DPOTrainer"


@rule(severity="error", formats=FORMATS, outranks=("schema-unknown-key",))
def check(view: RunView) -> Iterator[Found]:
    objective = view.run.objective
    if view.root.framework == "llamafactory" or view.root.facts.get("own_loop") or "unsloth" in view.root.document.text:
        return
    yield from _arguments(view)
    if view.root.section != CONFIG and (objective is None or objective.value != "dpo"):
        return
    for gone in departed(view.root, view.run.versions, "trl", CONFIG):
        new = gone.key.renamed_to
        plain = new is not None and view.root.format == "trl" and new not in view.root.keys and new.startswith("use_")
        yield Found(
            at=gone.entry.key,
            message=f"`{said(gone.entry)}` is gone from `{CONFIG}` since TRL {gone.left}"
            + (f", this is {gone.release}" if gone.pin is not None else ""),
            help=f"write `{new}`"
            if new
            else "remove it" + (", `max_length` cuts" if "prompt" in gone.entry.name else ""),
            notes=[(gone.pin, "the release")],
            fix=rename_key(gone.entry, new, "unsafe") if plain and new else None,
            severity=None if gone.certain else "info",
        )


def _arguments(view: RunView) -> Iterator[Found]:
    """Arguments of the trainer's call that its config takes now."""
    made = setup_of(view.root)
    trainer = made.trainer if made is not None else None
    if trainer is None or trainer.short != "DPOTrainer":
        return
    wanted, pin = installed(view.run.versions, "trl")
    known = history.framework("trl").section(TRAINER)
    keys = [key for name in trainer.sources if name != "tokenizer" and (key := known.own(name)) and key.removed_in]
    moved = [key for key in keys if key.known_in(wanted) is not True]
    if moved:
        names = ", ".join(f"`{key.name}`" for key in moved)
        yield Found(
            at=trainer.place,
            message=f"`DPOTrainer` takes no {names} since TRL {'.'.join(str(moved[0].removed_in).split('.')[:2])}"
            + (f", this is trl {pin.value}" if pin is not None else ""),
            help=f"give {'them' if len(moved) > 1 else 'it'} to `{CONFIG}`",
            notes=[(pin, "the release")],
            severity=None if wanted is not None and all(key.known_in(wanted) is False for key in moved) else "info",
        )
