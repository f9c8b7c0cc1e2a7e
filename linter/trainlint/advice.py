"""What findings about memory share: what a run needs for certain, where to point, and changes checked to fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from trainlint.documents import Place, Scalar
from trainlint.formats.spelling import spell
from trainlint.rule import COMMANDS, RunView
from trainlint.run import Value, known
from trainlint.units import gib

if TYPE_CHECKING:
    from trainlint.memory.assessment import Assessment

PHASES = {
    "load": "while the model is loaded",
    "forward": "in the forward pass",
    "loss": "when the loss is computed",
    "backward": "in the backward pass",
    "optimizer": "at the optimizer step",
    "evaluation": "in evaluation",
    "reference": "when the reference model runs",
    "save": "while a checkpoint is written",
}
LAUNCHED = ("hf-trainer", "trl", "llamafactory", "axolotl", "python-script")
"""Formats whose runs accelerate may start with a config of its own."""
MANY = 1024
"""Devices taken where their number is not known, for the least that each may hold."""
STATES = ("load", "optimizer", "save")
"""Phases whose peak no smaller batch lowers."""
WITH_METHOD = ("adapter.", "quantization.")
"""Groups whose values come with `method` in a change, so that its words say them."""
OBVIOUS = ("attention kernel: sdpa",)
"""Assumptions that are the libraries' defaults and not worth a word in a message."""


def budget(view: RunView) -> Assessment | None:
    """The memory to hold a run to.

    None where nothing is trained, where no device is known, and where a device holds only part of the layers or of each
    matrix (tensor, pipeline or context parallelism, a device map), which the estimate does not divide. A batch size
    that the framework searches for counts as 1.
    """
    memory, run = view.memory, view.run
    if not view.root.launches or memory is None or memory.capacity is None or known(run.device.cpu_only, False):
        return None
    degrees = (run.parallel.tensor, run.parallel.pipeline, run.parallel.context, run.parallel.expert)
    if any(degree is not None and degree.value > 1 for degree in degrees):
        return None
    if known(run.sharding.kind) == "device-map" and known(run.device.count) != 1:
        return None
    return memory.variant({"batch.micro": 1}) if known(run.batch.auto, False) else memory


def at_length(view: RunView, memory: Assessment) -> Assessment:
    """The memory when batches are as long as the limit, or the data where they are known, allow."""
    run = view.run
    limit, longest = run.length.max, run.data.tokens.get("max")
    if limit is None or known(run.length.packing, False) or known(run.length.pad_to_max, False):
        return memory
    reached = limit.value
    if longest is not None and not known(run.data.estimated, False):
        reached = min(reached, longest.value)
    return memory.variant({"length.max": reached, "length.pad_to_max": True}) or memory


def chosen_length(view: RunView) -> bool:
    """Whether batches of full length are to be expected: they are filled up, or both factors were written down."""
    run = view.run
    if known(run.length.packing, False) or known(run.length.pad_to_max, False) or "max" in run.data.tokens:
        return True
    written = [value is not None and value.written for value in (run.batch.micro, run.length.max)]
    return all(written)


def may_be_sharded(view: RunView) -> bool:
    """Whether a launcher that was not seen may shard the model: accelerate's config does it without the trainer's word.

    Not where the run has one device, where something that is known starts it, and not of weights that bitsandbytes
    packed, which ZeRO leaves whole.
    """
    run = view.run
    kind = run.sharding.kind
    if view.root.format not in LAUNCHED or known(run.device.count) == 1 or (kind is not None and kind.written):
        return False
    if run.quantization.bits is not None or known(run.parallel.world) == 1:
        return False
    return view.fragment("accelerate", "deepspeed", "shell-launcher") is None


def sharded(view: RunView, memory: Assessment) -> Assessment | None:
    """The same run with everything sharded over its devices."""
    count = view.run.device.count
    return memory.variant({"sharding.kind": "zero3", "parallel.data": count.value if count is not None else MANY})


def pressure_spot(view: RunView, memory: Assessment) -> Value[object] | Scalar | Place:
    """Where a finding about memory points: at the written value that one would change first.

    That is the batch or the length, but the model where its weights and states alone are the peak.
    """
    levers = ("batch.micro", "length.max", "model.id")
    written = [view.run.get(path) for path in (levers[::-1] if memory.peak_phase in STATES else levers)]
    placed = [value for value in written if value is not None and value.place is not None]
    if placed:
        return next((value for value in placed if value.value != 1), placed[0])
    root = view.root.root
    return root.entries[0].key if root is not None and root.entries else Place(view.root.file)


def device_words(view: RunView) -> str:
    """The device in a message: `the RTX 4090`, `each RTX 4090`, `the device`."""
    name, count = known(view.run.device.name), known(view.run.device.count, 1)
    return f"{'each' if count and count > 1 else 'the'} {name or 'device'}"


def assumed(memory: Assessment) -> str:
    """What was assumed, to end a message with; empty where nothing was."""
    said = [note for note in memory.assumptions if note not in OBVIOUS]
    return f" (assumed: {'; '.join(said[:2])})" if said else ""


def phase_words(memory: Assessment) -> str:
    """When the peak is: `at the optimizer step`."""
    return PHASES.get(memory.peak_phase, "at the peak")


def memory_help(view: RunView, memory: Assessment) -> str:
    """What to set for the run to fit, with what it then needs; what is left to do where nothing was found that fits."""
    from trainlint.memory.fit import fitting

    found = fitting(memory, view.run, lambda values: change_words(view, values) is not None)
    said = [f"{change_words(view, change.values)} (about {gib(change.likely)})" for change in found.changes]
    if said:
        return f"set {', or '.join(said)}"
    last = "adapters" if _full(view) else "a smaller model"
    others = f"use a larger device, more of them with sharding or {last}"
    if found.least is None:
        return others
    return f"{others}: with {change_words(view, found.least.values)} it still needs about {gib(found.least.likely)}"


def _full(view: RunView) -> bool:
    return view.run.method is None or view.run.method.value == "full"


def change_words(view: RunView, values: Mapping[str, object]) -> str | None:
    """A change as text of the run's root format; None where one of its values can't be said there."""
    root = view.root
    form, syntax = (COMMANDS, "shell") if root.starts else (root.format, root.document.syntax)
    said: list[str] = []
    for path, value in values.items():
        had = view.run.get(path)
        implied = path == "loss" or ("method" in values and path.startswith(WITH_METHOD))
        if implied or (had is not None and had.value == value):
            continue
        if had is not None and had.place is not None and had.file_format != form:
            return None
        words = spell(form, syntax, path, value, had.key if had is not None else "")
        if words is None:
            return None
        said.append(words)
    return " and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said)
