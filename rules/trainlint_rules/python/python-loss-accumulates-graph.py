"""Losses summed up or listed as tensors, each with its graph behind it."""

import re
from collections.abc import Iterator

from trainlint.api import Document, Edit, Fix, Found, RunView, amp, rule

BACKWARD = ("backward", "scaled-backward", "accelerator-backward", "engine-backward", "manual-backward")
KEPT = re.compile(
    r"^[ \t]+(?P<sum>[\w.]+(?:\[[^\]\n]*\])?)(?:\s*\+=\s*|\.append\(\s*|\s*=\s*(?P=sum)\s*\+\s*)"
    r"(?P<loss>[A-Za-z_][\w.]*)\s*(?:[*/]\s*[\w.]+(?:\([\w.]*\))?\s*)?\)?\s*(?:#.*)?$",
    re.MULTILINE,
)
"""A loss, perhaps times a number, added to something or put on a list; a call behind its name is no match."""
SCOPES = re.compile(r"no_grad|inference_mode")


@rule(severity="warning")
def check(view: RunView) -> Iterator[Found]:
    for fragment in view.fragments:
        calls, document = fragment.facts.get("amp"), fragment.document
        if not isinstance(calls, amp.Amp):
            continue
        backward = [event for event in calls.events if event.kind in BACKWARD]
        loops = [loop for scope in calls.scopes for loop in scope.loops]
        for match in KEPT.finditer(document.text) if backward else ():
            line = document.text.count("\n", 0, match.start()) + 1
            around = [loop for loop in loops if loop.place.line < line <= loop.place.end_line]
            inner = max(around, key=lambda loop: loop.place.line, default=None)
            back = [
                event for event in backward if inner and inner.place.line < event.place.line <= inner.place.end_line
            ]
            same = [event for event in back if f"{_name(event.subject)}.".startswith(match["loss"] + ".")]
            if inner is None or not same or _released(document, inner, match, backward, line):
                continue
            start = match.start("loss") - (document.text.rfind("\n", 0, match.start()) + 1)
            place = inner.place._replace(line=line, column=start + 1, end_line=line)
            place = place._replace(end_column=place.column + len(match["loss"]))
            behind = place._replace(column=place.end_column)
            yield Found(
                at=place,
                message=f"`{match['sum']}` keeps `{match['loss']}` as a tensor with its graph: memory grows with every "
                "step",
                help=f"take `{match['loss']}.detach()`, or `.item()` for a number",
                notes=[(same[0].place, "its backward pass")],
                fix=Fix((Edit(behind, ".detach()"),), "safe", "leave the graph behind"),
            )


def _name(subject: str) -> str:
    """The name at the head of what goes backward: `loss` of `loss / steps`."""
    found = re.match(r"[A-Za-z_][\w.]*", subject)
    return found[0] if found else ""


def _released(document: Document, loop: amp.Loop, match: re.Match[str], backward: list[amp.Event], line: int) -> bool:
    """Whether the sum goes backward itself, the loss became a number before, or no graph is recorded there."""
    kept, loss = re.escape(match["sum"]), re.escape(match["loss"])
    if any(re.match(rf"\(?{kept}\b", event.subject) for event in backward):
        return True
    text = "\n".join(document.line(number) for number in range(loop.place.line, loop.place.end_line + 1))
    if re.search(
        rf"\b{loss}\s*=\s*(float\(|[\w.]+\.(item|detach|data|cpu|numpy)\b)|{kept}(\s*=\s*{kept})?\.detach", text
    ):
        return True
    if re.search(
        rf"{kept}(\.backward|\.clear|\s*=\s*\[\]|\s*=\s*0|\s*=\s*torch\.zeros)|(sum|stack|mean)\({kept}", text
    ):
        return True
    margin = len(document.line(line)) - len(document.line(line).lstrip())
    for number in range(line - 1, loop.place.line, -1):
        above = document.line(number)
        indent = len(above) - len(above.lstrip())
        if above.strip() and indent < margin:
            margin = indent
            if SCOPES.search(above):
                return True
    return False
