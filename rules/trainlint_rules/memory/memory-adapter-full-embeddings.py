"""Embeddings or the output head train in full beside an adapter, though no word is new."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, device_words, gib, known, rule

TABLES = ("embed_tokens", "lm_head", "wte", "word_embeddings", "embed_in", "embed_out", "shared", "embeddings")
NEW = (
    "tokens", "special_tokens", "added_tokens_overrides", "resize_vocab", "new_special_tokens", "add_tokens",
    "add_special_tokens", "new_special_tokens_config", "resize_token_embeddings", "chat_template", "extra_vocab",
)  # fmt: skip
"""Keys and calls that bring new words, or a format whose words may be."""
SHARE = 0.1
"""Share of the device that they may take."""
HEAVY = 4 << 30
"""Bytes from which on they are worth a word where no device is known."""
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@rule(severity="warning", needs=("adapter.modules_to_save", "model.shape.vocab", "model.shape.hidden"))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    saved, shape, room = run.adapter.modules_to_save, run.model.shape, known(run.device.memory)
    if saved is None or shape.vocab is None or shape.hidden is None or saved.place is None:
        return
    tables = [name for name in saved.value if name.rpartition(".")[2] in TABLES]
    if not tables or (known(run.method) or "") not in ("lora", "qlora") or _new_words(view):
        return
    count = len(tables) * shape.vocab.value * shape.hidden.value
    width = BYTES.get(known(run.adapter.dtype) or "", 4)
    states = count * (2 * width + (2 if "8bit" in (known(run.optimizer.name) or "") else 8))
    if states <= (SHARE * room if room else HEAVY):
        return
    share = f", {100 * states / room:.0f} % of the {gib(room)} that {device_words(view)} has" if room else ""
    yield Found(
        at=saved,
        message=f"`{saved.key}` trains {', '.join(tables)} in full: {count / 1e6:.0f} M parameters, {gib(states)} with "
        f"gradients and moments{share}, and every checkpoint holds {gib(width * count)} of them",
        help=f"drop `{saved.key}` unless words are new; for a few new ones peft has `trainable_token_indices`",
        notes=[(run.model.id, f"{shape.vocab.value} words of {shape.hidden.value} numbers")],
        severity=None if room else "info",
    )


def _new_words(view: RunView) -> bool:
    """Whether anything in the files brings words that the model does not know."""
    for fragment in view.fragments:
        if any(key.partition(".")[0] in NEW for key in fragment.keys):
            return True
        if fragment.root is None and any(word in fragment.document.text for word in ("add_tokens", *NEW[2:])):
            return True
    return False
