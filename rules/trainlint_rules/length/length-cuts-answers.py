"""The longest sample kept is shorter than many samples of the data."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, known, rule

SHARES = (("p50", "half"), ("p90", "one in ten"))
WHOLE = ("pretrain", "grpo", "ppo", "rloo", "online-dpo")
"""Objectives that don't train on the end of a sample: texts are cut into windows, or prompts are all there is."""
STEP = 256


@rule(severity="warning", needs=("length.max", "data.tokens.p90"))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    length, tokens = run.length.max, run.data.tokens
    if length is None or not length.written or length.value <= 0 or _objective(view) in WHOLE:
        return
    if known(run.length.packing, False) and not _whole_samples(view):
        return
    cut = next(((name, share) for name, share in SHARES if name in tokens and tokens[name].value > length.value), None)
    if cut is None:
        return
    name, share = cut
    longer = tokens.get("p95", tokens[name])
    about = "at least " if known(run.data.estimated, False) else ""
    yield Found(
        at=length,
        message=f"at least {share} of the samples are longer than `{length.key}: {length.value}`: their "
        f"{'median' if name == 'p50' else '90th percentile'} is {about}{tokens[name].value} tokens, and the end, "
        "mostly the answer, is cut",
        help=_help(view, longer.value, length.key),
        notes=[(tokens[name], "the lengths")],
    )


def _objective(view: RunView) -> str:
    return view.run.objective.value if view.run.objective is not None else ""


def _whole_samples(view: RunView) -> bool:
    """Whether packing keeps samples whole, so that what is too long is still cut or dropped."""
    return view.root.format == "axolotl" or view.root.written("packing_strategy") in ("bfd", "ffd")


def _help(view: RunView, longer: int, key: str) -> str:
    """A length that keeps 95 in 100 samples, if the model and the device allow it."""
    if known(view.run.data.estimated, False):
        return f"raise `{key}`; a local `tokenizer.json` with the `tokenizers` extra tells how far, exactly"
    wanted = -(-longer // STEP) * STEP
    positions, memory = view.run.model.shape.positions, view.memory
    if positions is not None and positions.value < wanted:
        return f"split or drop the long samples: the model's positions end at {positions.value}"
    if memory is not None and memory.capacity is not None:
        variant = memory.variant({"length.max": wanted})
        if variant is not None and variant.device_use.likely > memory.capacity[0]:
            return f"split or drop the long samples: `{key}: {wanted}` does not fit the device"
    return f"set `{key}: {wanted}`, which keeps 95 % of the samples whole, or split the long ones"
