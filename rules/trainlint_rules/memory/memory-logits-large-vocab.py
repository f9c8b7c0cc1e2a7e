"""Logits over a large vocabulary, and their copies in float32, are a large part of what the run needs."""

from collections.abc import Iterator

from trainlint.api import (
    Found,
    RunView,
    at_length,
    budget,
    change_words,
    chosen_length,
    device_words,
    firm,
    gib,
    known,
    rule,
)

SHARE = 0.15
"""Share of the device that logits may take before they are worth a word."""
FULL = 0.85
"""Share of the device above which the whole need makes it worth a word; a warning above all of it."""
MOST = 0.4
"""Share of the need that the loss has where the run does not fit without logits either, to be worth a word."""
PLUGIN = "`cut_cross_entropy: true` with the plugin `axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin`"
TRAINS = ("sft", "pretrain")
BUILT = ("full", "shifted")
UNFUSED = ("mlx-lm",)
"""Frameworks that have no other loss."""
FUSED = {"kernels": "liger", "loss": "liger"}


@rule(severity="warning", needs=("device.memory", "memory", "length.max", "model.shape.vocab"))
def check(view: RunView) -> Iterator[Found]:
    run, memory = view.run, budget(view)
    vocabulary, length = run.model.shape.vocab, run.length.max
    if memory is None or memory.capacity is None or vocabulary is None or length is None:
        return
    if (
        (known(run.loss) or "") not in BUILT
        or (known(run.objective) or "sft") not in TRAINS
        or view.root.format in UNFUSED
    ):
        return
    if known(run.model.head, "causal-lm") != "causal-lm":
        return
    room = memory.capacity[0]
    rows = known(run.batch.micro, 1) if not known(run.batch.auto, False) else 1
    logits = 4 * (rows or 1) * length.value * vocabulary.value
    full = at_length(view, memory)
    if 2 * logits < SHARE * room or full.device_use.likely <= FULL * room:
        return
    fused = full.variant({"loss": "fused"})
    saved = full.device_use.likely - fused.device_use.likely if fused is not None else 0
    rest = full.device_use.likely - saved
    if saved < SHARE * room or (rest > room and saved < MOST * full.device_use.likely):
        return
    written = [value for value in (length, run.batch.micro) if value is not None and value.place is not None]
    words = change_words(view, FUSED) if known(run.kernels, "none") == "none" else None
    words = PLUGIN if view.root.format == "axolotl" else words
    likely = chosen_length(view) and firm(full) > room
    yield Found(
        at=written[0] if written else run.model.id or length,
        message=f"logits of {rows} x {length.value} tokens over {vocabulary.value} words take {gib(logits)} in "
        f"float32, and the loss holds copies of them: {gib(saved)} of about {gib(full.device_use.likely)}, "
        f"{device_words(view)} has {gib(room)}",
        help=f"{f'set {words}' if words else 'use a loss fused with the output head'}: without logits it needs "
        f"about {gib(rest)}",
        notes=[(run.model.id, "the model"), (run.device.name, "the device")],
        severity=None if likely else "info",
    )
