"""The optimizer steps inside the backward pass, where neither clipping nor accumulation is possible."""

from collections.abc import Iterator

from trainlint.api import Entry, Fix, Found, Place, RunView, Scalar, remove_line, rule, set_value, started

FLAG, CLIP, STEPS = "optimizer_in_bwd", "clip_grad_norm", "gradient_accumulation_steps"
WHY = {
    CLIP: "needs all gradients at once, which `optimizer_in_bwd` frees one by one: the recipe stops",
    STEPS: "needs gradients that stay, which `optimizer_in_bwd` frees in each backward pass: the recipe stops",
}


@rule(severity="error", formats=("torchtune",))
def check(view: RunView) -> Iterator[Found]:
    given = _given(view)
    flag = given.get(FLAG)
    if flag is None or flag[0].lower() != "true":
        return
    for name in (CLIP, STEPS):
        text, place, entry = given.get(name, ("", Place(""), None))
        if text.lower() in ("", "null", "~") or (name == STEPS and text == "1"):
            continue
        none = name == CLIP and text == "None"
        why = "is a text, not null: the recipe takes it for a norm to clip at, and stops" if none else WHY[name]
        yield Found(
            at=place,
            message=f"`{name}{': ' if entry else '='}{text}` {why}",
            help=f"set `{name}` to {'null' if name == CLIP else 1}, or `{FLAG}` to false",
            notes=[(flag[1], "steps inside the backward pass")],
            fix=_fix(view, entry, none, name),
        )


def _given(view: RunView) -> dict[str, tuple[str, Place, Entry | None]]:
    """The three keys: their text and where it stands, in the config or (which wins) on the command line."""
    found: dict[str, tuple[str, Place, Entry | None]] = {}
    for name in (FLAG, CLIP, STEPS):
        entry = view.root.entry(name)
        if entry is not None and isinstance(entry.value, Scalar):
            found[name] = (entry.value.raw or "null", entry.value.place, entry)
    for fragment in view.fragments:
        for start in started.trainings(fragment):
            for word in start.command.words if start.launcher == "torchtune" else ():
                name, equals, text = (word.text or "").partition("=")
                if equals and name in (FLAG, CLIP, STEPS):
                    found[name] = (text, word.place, None)
    return found


def _fix(view: RunView, entry: Entry | None, none: bool, name: str) -> Fix | None:
    if entry is None:
        return None
    if none:
        return set_value(entry.value, "null", "safe")
    return remove_line(view.root.document, entry) if name == CLIP else set_value(entry.value, "1")
