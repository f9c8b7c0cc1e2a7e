"""The optimizer steps inside the backward pass, where neither clipping nor accumulation is possible."""

from collections.abc import Iterator

from trainlint.api import Entry, Fix, Found, RunView, Scalar, remove_line, rule, said, set_value


@rule(severity="error", formats=("torchtune",))
def check(view: RunView) -> Iterator[Found]:
    root = view.root
    flag = root.entry("optimizer_in_bwd")
    if flag is None or root.written("optimizer_in_bwd") is not True:
        return
    clip, steps = root.entry("clip_grad_norm"), root.entry("gradient_accumulation_steps")
    if clip is not None and isinstance(clip.value, Scalar) and clip.value.value is not None:
        text = clip.value.value == "None"
        yield _found(
            clip,
            flag,
            "is a text, not null: the recipe takes it for a norm to clip at, and stops"
            if text
            else "needs all gradients at once, which `optimizer_in_bwd: true` frees one by one: the recipe stops",
            set_value(clip.value, "null", "safe") if text else remove_line(root.document, clip),
        )
    count = root.written("gradient_accumulation_steps")
    if steps is not None and isinstance(steps.value, Scalar) and isinstance(count, int) and count > 1:
        yield _found(
            steps,
            flag,
            "needs gradients that stay, which `optimizer_in_bwd: true` frees in each backward pass: the recipe stops",
            set_value(steps.value, "1"),
        )


def _found(entry: Entry, flag: Entry, why: str, fix: Fix | None) -> Found:
    return Found(
        at=entry,
        message=f"`{said(entry)}` {why}",
        help=f"set `{entry.name}` to {'null' if entry.name == 'clip_grad_norm' else 1}, or `{flag.name}` to false",
        notes=[(flag, "steps inside the backward pass")],
        fix=fix,
    )
