"""The memory ledger as people read it: a table of what lives at the peak, phases as bars, what is open in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from trainlint.formats.spelling import key_for
from trainlint.report.color import paint
from trainlint.run import TrainingRun, path_info
from trainlint.units import GIB, gib

if TYPE_CHECKING:
    from trainlint.memory.assessment import Assessment
    from trainlint.memory.ledger import Entry

BAR = 30
"""Characters of the longest bar."""
SMALL = 0.001
"""Share of the peak below which entries are put together."""
ROUNDING = ", each tensor rounded up to 512 B"
"""What every formula of the walk says, and a table need not repeat."""
_VERSION = re.compile(r"\b([a-z][\w-]*) ?(?:[<>]=?|==)")
_TUPLE = re.compile(r"\(('[^()]*'),?\)")
GROUPS = ("weights", "gradients", "optimizer state", "activations", "logits", "other")

OPEN = {
    "batch.micro": "the micro batch, counted as 1; without it there is no upper end",
    "length.max": "the length, counted as 2048 tokens or what the positions allow; without it there is no upper end",
    "precision.weights": "the dtype of the weights, counted as bfloat16, at most float32",
    "method": "what trains, counted as all weights, at least adapters over 4 bits",
    "adapter.rank": "the adapters' rank, counted as 8, at most 64",
    "checkpointing.kind": "activation checkpointing, counted as off, at least full",
    "optimizer.name": "the optimizer, counted as AdamW",
    "model.shape": "the model's shape: activations are those of a usual model of its size; a config.json would tell",
    "parallel.data": "the number of devices that share the states, counted as 8, at least 1",
}
"""What is said where nothing tells a value."""


def compact(count: int) -> str:
    """A count as people read it: `6.98 B`, `41.9 M`, `512`."""
    for size, letter in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k")):
        if abs(count) >= size:
            number = count / size
            return f"{number:.{2 if number < 10 else 1 if number < 100 else 0}f} {letter}"
    return str(count)


def group(what: str) -> str:
    """Which of `GROUPS` an entry counts for."""
    if what.startswith(("optimizer state", "master weights")):
        return "optimizer state"
    if "gradient" in what or what == "reduce buckets":
        return "gradients"
    if "logits" in what or what == "loss":
        return "logits"
    if what in ("inputs", "evaluation inputs", "optimizer temporaries", "loss scale and counters"):
        return "other"
    weights = ("weight", "reference model", "persistent parameters", "gathered output head", "quantization scales")
    return "weights" if any(word in what for word in weights) or what.startswith("model before") else "activations"


def grouped(entries: Iterable[Entry]) -> dict[str, int]:
    """Bytes by group."""
    found = dict.fromkeys(GROUPS, 0)
    for entry in entries:
        found[group(entry.what)] += entry.nbytes
    return found


def table(found: Assessment) -> Iterator[str]:
    """What lives at the peak, the largest first; what is less than a thousandth in one line."""
    entries = sorted(found.ledger().entries, key=lambda entry: -entry.nbytes)
    total = sum(entry.nbytes for entry in entries)
    shown = [entry for entry in entries if entry.nbytes >= SMALL * total]
    small = [entry for entry in entries if entry.nbytes < SMALL * total]
    if len(small) == 1:
        shown, small = entries, []
    rows = [("at the peak", "dtype", "elements", "GiB", "alive", "formula")]
    for entry in shown:
        elements = compact(entry.elements) if entry.elements else ""
        size = f"{entry.nbytes / GIB:.3f}"
        rows.append((entry.what, entry.dtype, elements, size, _alive(entry.phases, found.phases), _formula(entry)))
    if small:
        size = f"{sum(entry.nbytes for entry in small) / GIB:.3f}"
        rows.append((f"{len(small)} small entries", "", "", size, "", ""))
    rows.append((f"all, {_when(found.peak_phase)}", "", "", f"{total / GIB:.3f}", "", ""))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        what, dtype, elements, size, alive = (
            row[column].rjust(widths[column]) if column in (2, 3) else row[column].ljust(widths[column])
            for column in range(5)
        )
        yield f"  {what}  {dtype}  {elements}  {size}  {alive}  {row[5]}".rstrip()


def _formula(entry: Entry) -> str:
    text = entry.formula.replace(ROUNDING, "")
    if text.startswith(f"{entry.elements} x "):
        text = text.removeprefix(f"{entry.elements} x ") + " each"
    return re.sub(r"\d{5,}", lambda number: compact(int(number[0])), text)


def _alive(phases: tuple[str, ...], every: Mapping[str, int]) -> str:
    return "always" if set(phases) >= set(every) else ", ".join(phases)


def _when(phase: str) -> str:
    return "at the optimizer step" if phase == "optimizer" else f"in the {phase} phase"


def bars(found: Assessment, capacity: int | None, color: bool, blocks: bool) -> Iterator[str]:
    """The peak of every phase as a bar, and the device's memory as another."""
    lengths = dict(found.phases) | ({"the device": capacity} if capacity is not None else {})
    most = max(lengths.values(), default=1) or 1
    for name, size in lengths.items():
        bar = ("█" if blocks else "#") * max(1, round(BAR * size / most))
        kind = "dim" if name != "the device" else "error" if found.verdict == "exceeds" else "help"
        yield f"    {name:<10} {gib(size):>10}  {paint(bar, kind, color)}"


def open_words(run: TrainingRun, said: str) -> str:
    """What is unknown, what was taken for it, and what would narrow it."""
    path, _, options = said.partition(": ")
    if options and path_info(path) is not None:
        choices = _TUPLE.sub(lambda found: found[1].replace("'", ""), options).replace("), ", ") or ")
        packages = dict.fromkeys(_VERSION.findall(options))
        pinned = f": pin {' and '.join(packages)} in requirements.txt, or in `versions` of the settings"
        return f"`{path}`, {choices}" + (pinned if packages else "")
    words = OPEN.get(said)
    if words is None:
        return said
    key = key_for(run.root_format, said)
    return f"{words}: write `{key}`" if key and key != said else words
