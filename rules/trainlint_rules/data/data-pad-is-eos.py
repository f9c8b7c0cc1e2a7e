"""The padding token is the end-of-text token, and the collator masks whatever is padding."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, assignments_of, calls_of, rule, setup_of, since

PAIRS = ((".pad_token", ".eos_token"), (".pad_token_id", ".eos_token_id"))


@rule(severity="warning", formats=("python-script",))
def check(view: RunView) -> Iterator[Found]:
    made = setup_of(view.root)
    collators = calls_of(view.root, "DataCollatorForLanguageModeling")
    trainer = made.trainer if made is not None else None
    if trainer is None:
        return
    collator = next((one for one in collators if one.sources.get("mlm") == "False"), None)
    if trainer.short == "SFTTrainer":
        packed = view.run.length.packing
        old = since(view.run.versions, "trl", "0.16") is False and "data_collator" not in trainer.sources
        masked = trainer.place if old and not (packed is not None and packed.value) else None
    else:
        plain = trainer.short in ("Trainer", "Seq2SeqTrainer") and not trainer.name.startswith("trl.")
        ours = collator is not None and collator.name.startswith("transformers")
        masked = collator.place if collator is not None and plain and ours else None
    if masked is None:
        return
    for one in assignments_of(view.root):
        if any(one.target.endswith(pad) and one.source.endswith(eos) for pad, eos in PAIRS):
            yield Found(
                at=one.place,
                message="padding is the end of the text, and `DataCollatorForLanguageModeling` leaves padding out of "
                "the loss: the model never learns to stop",
                help="give the tokenizer a padding token of its own, or mask by length",
                notes=[(masked, "masked here" if collator is not None else "its default collator")],
                severity="info" if one.conditional else None,
            )
            return
