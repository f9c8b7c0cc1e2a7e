"""Samples may be longer than the model has positions."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, known, rule

LEARNED = frozenset(
    {"gpt2", "gpt_neo", "gpt_bigcode", "gptj", "codegen", "opt", "bert", "distilbert", "electra", "albert", "ernie"}
    | {"bart", "mbart", "biogpt", "mobilebert"}
)
"""Positions are rows of a table: beyond its end is an index error."""
OFFSET = frozenset({"roberta", "xlm-roberta", "camembert", "longformer", "mpnet", "xmod"})
"""The table's first rows are the padding's: two positions less than it says."""
ROTARY = frozenset(
    {"llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "gemma", "gemma2", "phi", "phi3"}
    | {"gpt_neox", "stablelm", "starcoder2", "olmo", "olmo2", "olmoe", "cohere", "granite", "smollm3"}
)
"""Positions are angles: beyond those trained the model runs, and gets worse."""
STRETCHED = ("rope_scaling", "rope_theta", "rope_parameters", "shift_attn", "yarn", "model_kwargs")


@rule(severity="warning", needs=("length.max", "model.shape.positions", "model.type"))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    length, shape = run.length.max, run.model.shape
    kind = known(run.model.type, "") or ""
    if length is None or not length.written or shape.positions is None:
        return
    table = kind in LEARNED or kind in OFFSET
    positions = shape.positions.value - (2 if kind in OFFSET else 0)
    if not 0 < positions < length.value or not (table or (kind in ROTARY and not _stretched(view))):
        return
    longest = run.data.tokens.get("max")
    reached = longest is not None and longest.value > positions
    padded = known(run.length.pad_to_max, False)
    if longest is not None and not reached and not padded and not known(run.data.estimated, False):
        return
    if known(run.length.packing, False) and not reached:
        return
    what = "a longer sample is an index error" if table else "nothing stretches them, and beyond them it gets worse"
    name = known(run.model.id) or f"the {kind} model"
    yield Found(
        at=length,
        message=f"`{length.key}: {length.value}` is more than the {positions} positions of {name}: {what}",
        help=f"set `{length.key}: {positions}`" + ("" if table else ", or scale the rotary embedding"),
        notes=[(run.model.id, "the model")],
        severity="error" if table and (reached or padded) else None if table or reached else "info",
    )


def _stretched(view: RunView) -> bool:
    """Whether anything in the configs changes how positions are turned into angles."""
    if view.run.model.shape.rope_scaling is not None or known(view.run.kernels) == "unsloth":
        return True
    keys = (key for fragment in view.fragments for key in fragment.keys)
    return any(word in key for key in keys for word in STRETCHED)
