"""Arguments of a TRL trainer that its config takes now."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, history, installed, rule, setup_of, since

SECTIONS = {"SFTTrainer": "kwargs:SFTTrainer"}


@rule(severity="error", formats=("python-script",))
def check(view: RunView) -> Iterator[Found]:
    made = setup_of(view.root)
    trainer = made.trainer if made is not None else None
    section = SECTIONS.get(trainer.short) if trainer is not None else None
    if trainer is None or section is None or "unsloth" in view.root.document.text:
        return  # Unsloth's trainers take the old arguments
    versions = view.run.versions
    wanted, pin = installed(versions, "trl")
    known = history.framework("trl").section(section)
    keys = [key for name in trainer.sources if name != "tokenizer" and (key := known.own(name)) and key.removed_in]
    moved = [key.name for key in keys if key.known_in(wanted) is not True]
    certain = wanted is not None and all(known[name].known_in(wanted) is False for name in moved)
    renamed = since(versions, "trl", "0.16") if "tokenizer" in trainer.sources else False
    release = f", this is trl {pin.value}" if pin is not None else ""
    if moved:
        config = section.removeprefix("kwargs:").replace("Trainer", "Config")
        names = ", ".join(f"`{name}`" for name in moved)
        yield Found(
            at=trainer.place,
            message=f"`{trainer.short}` takes no {names} since TRL 0.13{release}",
            help=f"give {'them' if len(moved) > 1 else 'it'} to `{config}`"
            + (", `max_seq_length` as `max_length`" if "max_seq_length" in moved else "")
            + (", and name the tokenizer `processing_class`" if renamed else ""),
            notes=[(pin, "the release")],
            severity=None if certain else "info",
        )
    elif renamed:
        yield Found(
            at=trainer.place,
            message=f"`{trainer.short}` takes no `tokenizer` since TRL 0.16{release}",
            help="name it `processing_class`",
            notes=[(pin, "the release")],
        )
