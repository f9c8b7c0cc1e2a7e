"""What findings about memory share: what a run needs for certain, where to point, and changes checked to fit.

A change is said in the user's own keys, and where these stand at the top of the run's root file it is a fix as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from trainlint.documents import Place, Scalar
from trainlint.formats.spelling import spelled, written
from trainlint.rule import COMMANDS, Edit, Fix, RunView
from trainlint.run import Value, known
from trainlint.units import gib

if TYPE_CHECKING:
    from trainlint.memory.assessment import Assessment
    from trainlint.memory.fit import Change, Fit

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
IMPLIED = ("loss", "parallel.data", "model.config", "model.parameters")
"""Values that follow from others of the same change."""
EVERY = 6
"""Changes that a thorough search gives at most."""
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


def firm(memory: Assessment) -> int:
    """Bytes of the device that are likely needed without the cache, which the allocator gives back before it fails."""
    return memory.allocated.likely + memory.device_use.low - memory.allocated.low


def assumed(memory: Assessment) -> str:
    """What was assumed, to end a message with; empty where nothing was."""
    said = [note for note in memory.assumptions if note not in OBVIOUS]
    return f" (assumed: {'; '.join(said[:2])})" if said else ""


def phase_words(memory: Assessment) -> str:
    """When the peak is: `at the optimizer step`."""
    return PHASES.get(memory.peak_phase, "at the peak")


def memory_advice(view: RunView, memory: Assessment) -> tuple[str, Fix | None]:
    """What to set for the run to fit, with what it then needs, and a fix that sets the first; what is left to do where
    nothing was found that fits.
    """
    found = fits(view, memory)
    if found.changes:
        said = [f"{said_in(view, change)} (about {gib(change.likely)})" for change in found.changes]
        return ", or ".join([said[0], *(each.removeprefix("set ") for each in said[1:])]), change_fix(
            view, found.changes[0]
        )
    last = "adapters" if _full(view) else "a smaller model"
    others = f"use a larger device, more of them with sharding or {last}"
    if found.least is None:
        return others, None
    with_all = said_in(view, found.least).replace("set `", "`")
    return f"{others}: with {with_all} it still needs about {gib(found.least.likely)}", None


def memory_help(view: RunView, memory: Assessment) -> str:
    """The words of `memory_advice`."""
    return memory_advice(view, memory)[0]


def fits(view: RunView, memory: Assessment, thorough: bool = False) -> Fit:
    """The changes that make a run fit, as far as its format has words for them."""
    from trainlint.memory.fit import fitting

    limit = EVERY if thorough else 2
    return fitting(memory, view.run, lambda values: change_words(view, values) is not None, limit, thorough)


def _full(view: RunView) -> bool:
    return view.run.method is None or view.run.method.value == "full"


def said_in(view: RunView, change: Change) -> str:
    """A change as an imperative, in the user's own keys; what is set elsewhere in words."""
    said: list[str] = []
    elsewhere: list[str] = []
    for knob, values in change.parts:
        pairs = change_keys(view, values)
        if pairs is None:
            elsewhere.append(knob.phrase)
        else:
            said += [written(_spelling(view)[1], [pair]) for pair in pairs]
    said = list(dict.fromkeys(said))
    return _listed([f"set {said[0]}", *said[1:], *elsewhere] if said else elsewhere)


def _listed(said: list[str]) -> str:
    return " and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said)


def change_words(view: RunView, values: Mapping[str, object]) -> str | None:
    """A change as text of the run's root format; None where one of its values can't be said there."""
    pairs = change_keys(view, values)
    return None if pairs is None else _listed([written(_spelling(view)[1], [pair]) for pair in pairs])


def change_keys(view: RunView, values: Mapping[str, object]) -> tuple[tuple[str, str], ...] | None:
    """A change as keys of the run's root format with their texts; None where one of its values can't be said there."""
    form = _spelling(view)[0]
    said: list[tuple[str, str]] = []
    for path, value in values.items():
        had = view.run.get(path)
        implied = path in IMPLIED or ("method" in values and path.startswith(WITH_METHOD))
        if implied or (had is not None and had.value == value):
            continue
        if had is not None and had.place is not None and had.file_format != form:
            return None
        pairs = spelled(form, path, value, had.key if had is not None else "")
        if pairs is None:
            return None
        said += (pair for pair in pairs if not _has(view, *pair))
    return tuple(said)


def _has(view: RunView, key: str, text: str) -> bool:
    """Whether the root file says so already."""
    entry = view.root.entry(key)
    return entry is not None and isinstance(entry.value, Scalar) and entry.value.raw.lower() == text.lower()


def _spelling(view: RunView) -> tuple[str, str]:
    """The format and the syntax in which a run's values are written."""
    root = view.root
    return (COMMANDS, "shell") if root.starts else (root.format, root.document.syntax)


def change_fix(view: RunView, change: Change) -> Fix | None:
    """The change as edits of the run's root file: written values replaced, keys that YAML lacks added below them.

    None where something of it is set elsewhere, or is no single value at the top of the file.
    """
    root, syntax = view.root, view.root.document.syntax
    if root.starts or root.root is None or syntax not in ("yaml", "toml", "json"):
        return None
    edits: list[Edit] = []
    added: list[str] = []
    for _, values in change.parts:
        pairs = change_keys(view, values)
        if pairs is None:
            return None
        for key, text in pairs:
            entry = root.entry(key)
            if entry is None and (syntax != "yaml" or "." in key):
                return None
            if entry is None:
                added.append(f"{key}: {text}\n")
            elif isinstance(entry.value, Scalar) and not entry.merged and _stands(view, entry.value.place):
                edits.append(Edit(entry.value.place, _literal(syntax, text)))
            else:
                return None
    if added:
        below = _line_below(view, edits)
        if below is None:
            return None
        edits.append(Edit(below, "".join(dict.fromkeys(added))))
    return Fix(tuple(edits), "unsafe", said_in(view, change)) if edits else None


def _stands(view: RunView, place: Place) -> bool:
    """Whether a value stands in the root file on one line, and is no anchor or alias."""
    text = view.root.document.line(place.line)
    own = place.file == view.root.file and place.line == place.end_line
    return own and text[place.column - 1 : place.column] not in ("*", "&", "|", ">", "")


def _line_below(view: RunView, edits: list[Edit]) -> Place | None:
    """Where a new top-level key of a YAML file can stand: below the last that changes, else below a lever."""
    document, root = view.root.document, view.root.root
    lines = {edit.place.line for edit in edits}
    levers = (view.run.batch.micro, view.run.length.max, view.run.model.id)
    lines = lines or {value.place.line for value in levers if value is not None and value.place is not None}
    entries = root.entries if root is not None else ()
    for entry in reversed(entries):
        key = entry.key.place
        if key.line in lines and key.file == document.file and key.column == 1 and isinstance(entry.value, Scalar):
            if not document.line(key.line).startswith(entry.key.raw) or not _stands(view, entry.value.place):
                continue
            if key.line == len(document.text.split("\n")):  # no line end to stand below
                continue
            return Place(document.file, key.line + 1, 1, key.line + 1, 1)
    return None


def _literal(syntax: str, text: str) -> str:
    """A text as a value of TOML or JSON, which want quotes around words."""
    plain = text in ("true", "false") or text[:1] in '["' or text.replace(".", "", 1).isdigit()
    return text if plain or syntax == "yaml" else f'"{text}"'
