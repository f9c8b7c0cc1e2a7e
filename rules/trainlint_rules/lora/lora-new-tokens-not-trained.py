"""New tokens whose rows of the embedding nothing trains."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, Sequence, rule

ENDS = ("embed", "wte", "word_embeddings", "lm_head")
TRAINED = ("trainable_token_indices", "trainable_tokens", "fix_untrained_tokens")
FACTORY = ("new_special_tokens", "add_special_tokens", "add_tokens", "resize_vocab")
NAMED = ("pad_token", "eos_token", "bos_token", "unk_token", "sep_token", "cls_token", "mask_token")
"""Roles that mostly name a token of the vocabulary, or one that is never learned."""
CHATML = frozenset(("<|im_start|>", "<|im_end|>"))
"""What Qwen's vocabulary has already."""


@rule(severity="warning", needs=("method",), formats=("axolotl", "llamafactory", "python-script"))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    trained = [*(run.adapter.modules_to_save.value if run.adapter.modules_to_save else ())]
    trained += run.adapter.targets.value if run.adapter.targets else ()
    if run.method is None or run.method.value not in ("lora", "qlora"):
        return
    if any(name.rpartition(".")[2].startswith(ENDS) for name in trained):
        return
    if any(word in fragment.document.text for fragment in view.fragments for word in TRAINED):
        return
    match view.root.format:
        case "llamafactory":
            yield from _factory(view)
        case "axolotl":
            yield from _axolotl(view)
        case _:
            yield from _script(view)


def _factory(view: RunView) -> Iterator[Found]:
    """LLaMA-Factory trains both ends in full when it has resized the vocabulary and nobody says what else trains."""
    for key in FACTORY:
        value = view.root.value(key)
        if value is not None and value.value:
            yield Found(
                at=value,
                message=f"`{key}: {value.raw}` without `additional_target`: LoRA leaves new rows as they start, so "
                "LLaMA-Factory trains embedding and output head in full beside it",
                help="write `additional_target: embed_tokens,lm_head` to have that said, and count its memory",
                severity="info",
            )
            return


def _axolotl(view: RunView) -> Iterator[Found]:
    entry = view.root.entry("tokens")
    items = entry.value.items if entry is not None and isinstance(entry.value, Sequence) else ()
    names = [str(getattr(item, "value", "")) for item in items]
    kind = view.run.model.type
    if entry is None or not names or (CHATML.issuperset(names) and kind and kind.value.startswith("qwen")):
        return
    yield Found(
        at=items[0],
        message=f"`tokens` adds {len(names)} to the vocabulary, and no adapter trains the embedding: "
        "new tokens keep their first values",
        help="set `peft_trainable_token_indices` to their numbers"
        if _tied(view)
        else "set `lora_modules_to_save: [embed_tokens, lm_head]`",
    )


def _tied(view: RunView) -> bool:
    """Whether a copy of either end would untie the two."""
    tied = view.run.model.shape.tied
    return tied is not None and tied.value


def _script(view: RunView) -> Iterator[Found]:
    calls = view.root.facts.get("calls")
    if not isinstance(calls, tuple) or not any(call.short == "resize_token_embeddings" for call in calls):
        return
    for call in calls:
        if call.short not in ("add_tokens", "add_special_tokens") or call.conditional:
            continue
        only_roles = "additional_special_tokens" not in call.first and any(name in call.first for name in NAMED)
        if call.short == "add_special_tokens" and (only_roles or not call.first):
            continue
        yield Found(
            at=call.place,
            message="tokens are added, and no adapter trains the embedding: they keep their first values",
            help="pass `trainable_token_indices` to `LoraConfig`"
            if _tied(view)
            else 'pass `modules_to_save=["embed_tokens", "lm_head"]` or `trainable_token_indices` to `LoraConfig`',
        )
        return
