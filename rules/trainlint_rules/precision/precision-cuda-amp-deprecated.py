"""Names of mixed precision that torch 2.4 deprecates."""

import re
from collections.abc import Iterator

from trainlint.api import Edit, FileView, Fix, Found, amp, rule, versions

OLD = ("torch.cuda.amp.", "torch.cpu.amp.")
WRITTEN = re.compile(r"torch\.(cuda|cpu)\.amp\.(autocast|GradScaler)\((\)|\w+\s*=)")
"""A call in full, without positional arguments, whose order is another in `torch.amp`."""

CHOOSES = re.compile(r"version|hasattr|exception", re.IGNORECASE)
"""Conditions of code that takes the old names only where the new ones are missing."""


@rule(severity="info", on="file", formats=("python-script",))
def check(view: FileView) -> Iterator[Found]:
    calls = view.fragment.facts.get("amp")
    if not isinstance(calls, amp.Amp):
        return
    old = [
        event
        for event in calls.of("autocast", "scaler")
        if event.api.startswith(OLD) and not CHOOSES.search(event.condition)
    ]
    installed = view.versions.get("torch")
    allowed = versions.parse(installed.value) if installed else None
    newest = allowed.highest if allowed else None
    if not old or (newest is not None and str(newest).split(".")[:2] in (["2", str(minor)] for minor in range(4))):
        return
    if newest is not None and str(newest).startswith(("0.", "1.")):
        return
    edits = []
    for event in old:
        found = WRITTEN.match(view.document.line(event.place.line), event.place.column - 1)
        if found is not None:
            end = event.place.column + found.start(3) - found.start()
            place = event.place._replace(end_line=event.place.line, end_column=end)
            comma = "" if found[3] == ")" else ", "
            edits.append(Edit(place, f'torch.amp.{found[2]}("{found[1]}"{comma}'))
    names = ", ".join(sorted({f"`{event.api}`" for event in old}))
    first = old[0]
    device = first.api.split(".")[1]
    yield Found(
        at=first.place,
        message=f"{names}: deprecated since torch 2.4",
        help=f'call `torch.amp.{first.api.rpartition(".")[2]}("{device}", …)`',
        fix=Fix(tuple(edits), "unsafe", "use `torch.amp`") if edits else None,
    )
