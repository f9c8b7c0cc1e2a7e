"""The padding token is the end-of-text token, and the collator masks whatever is padding."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, assignments_of, calls_of, rule, setup_of

PAIRS = ((".pad_token", ".eos_token"), (".pad_token_id", ".eos_token_id"))


@rule(severity="warning", formats=("python-script",))
def check(view: RunView) -> Iterator[Found]:
    made = setup_of(view.root)
    collators = calls_of(view.root, "DataCollatorForLanguageModeling")
    trainer = made.trainer if made is not None else None
    if trainer is None or trainer.name.startswith("trl.") or trainer.short not in ("Trainer", "Seq2SeqTrainer"):
        return  # TRL masks by length, not by the token
    collator = next((one for one in collators if one.sources.get("mlm") == "False"), None)
    if collator is None or not collator.name.startswith("transformers"):
        return
    for one in assignments_of(view.root):
        if any(one.target.endswith(pad) and one.source.endswith(eos) for pad, eos in PAIRS):
            yield Found(
                at=one.place,
                message=f"padding is the end of the text, and `{collator.short}` leaves padding out of the loss: "
                "the model never learns to stop",
                help="give the tokenizer a padding token of its own, or mask by length",
                notes=[(collator.place, "masked here")],
                severity="info" if one.conditional else None,
            )
            return
