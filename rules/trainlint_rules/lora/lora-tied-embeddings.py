"""An adapter that trains one end of a tied embedding."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, rule

ENDS = ("embed_tokens", "lm_head", "wte", "word_embeddings", "embed_in", "embed_out")
KEEPS = ("ensure_weight_tying", "trainable_token_indices", "trainable_tokens")
"""Options with which PEFT keeps both ends alike."""


PEFT = ("hf-trainer", "trl", "axolotl", "llamafactory", "ms-swift", "python-script", "shell-launcher")


@rule(severity="warning", needs=("model.shape.tied",), formats=PEFT)
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    tied = run.model.shape.tied
    if tied is None or not tied.value or tied.origin == "assumed":
        return
    if (
        run.method is None
        or run.method.value not in ("lora", "qlora")
        or (run.kernels and run.kernels.value == "unsloth")
    ):
        return
    if any(word in fragment.document.text for fragment in view.fragments for word in KEEPS):
        return
    for path, how in (("adapter.modules_to_save", "trained in full"), ("adapter.targets", "adapted")):
        modules = run.get(path)
        if modules is None or modules.place is None or not isinstance(modules.value, tuple):
            continue
        named = [name for name in modules.value if name.rpartition(".")[2] in ENDS]
        if not named:
            continue
        said = " and ".join(f"`{name}`" for name in named)
        axolotl = view.root.format == "axolotl"
        option = "`peft_ensure_weight_tying: true`" if axolotl else "`ensure_weight_tying=True`"
        both = "each gets a copy of its own" if len(named) > 1 else "the other end keeps the old weights"
        yield Found(
            at=modules,
            message=f"`{modules.key}`: {said} {how}, but this model ties embedding and output head in one tensor: "
            f"{both}, and a merged model loses one of them",
            help=f"set {option} (PEFT 0.18 and later), or leave both out",
            notes=[(run.model.id, "the model ties them")],
        )
        return
