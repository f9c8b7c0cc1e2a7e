"""Texts for SFT that a function formats without an end-of-text token, under a TRL that adds none."""

import re
from collections.abc import Iterator

from trainlint.api import Found, RunView, rule, setup_of, since

ENDS = re.compile(r"eos|</s>|<\|im_end\|>|<\|endoftext\|>|<\|eot_id\|>|<end_of_turn>|apply_chat_template|\[EOS\]", re.I)


@rule(severity="warning", formats=("python-script",))
def check(view: RunView) -> Iterator[Found]:
    made = setup_of(view.root)
    trainer = made.trainer if made is not None else None
    if trainer is None or trainer.short != "SFTTrainer" or since(view.run.versions, "trl", "0.16") is not False:
        return
    function = trainer.sources.get("formatting_func", "None")
    if function == "None" or not re.search(rf"def {re.escape(function)}\b", view.root.document.text):
        return
    packed = view.run.length.packing
    if ENDS.search(view.root.document.text) or (packed is not None and packed.value):
        return  # packing puts the token between the samples
    pin = view.run.versions.get("trl")
    yield Found(
        at=trainer.place,
        message=f"`{function}` ends no text with the end-of-text token, and this TRL adds none: "
        "the model never learns to stop",
        help="end each text with `tokenizer.eos_token`, or take TRL 0.16 or later",
        notes=[(pin, "the release")],
    )
