"""A launcher's mixed precision that the script's own argument replaces."""

import ast
from collections.abc import Iterator

from trainlint.api import Found, Fragment, RunView, Value, rule

NAME = "mixed_precision"
MIXED = ("fp16", "bf16", "fp8")


@rule(severity="warning", formats=("python-script", "shell-launcher"))
def check(view: RunView) -> Iterator[Found]:
    for script in view.fragments:
        calls = script.facts.get("calls")
        made = [call for call in calls if call.short == "Accelerator"] if isinstance(calls, tuple) else []
        if len(made) != 1 or NAME not in made[0].sources:
            continue
        asked = _asked(view)
        own = script.values.get("precision.mixed")
        word = own.value if own is not None else _default(script, made[0].sources[NAME])
        if asked is None or word not in ("no", *MIXED) or word == asked.value:
            continue
        at = own.place if own is not None and own.place is not None else made[0].place
        yield Found(
            at=at,
            message=f"the script asks for `{word}`, so the launcher's `{asked.key}: {asked.raw}` is lost",
            help=f"leave `{NAME}` out of `Accelerator(…)`, or let its default be `None`",
            notes=[(asked, "the launcher's choice")],
        )


def _asked(view: RunView) -> Value[object] | None:
    """What the launcher is told: in its config, or on the command line before the script."""
    for fragment in view.fragments:
        launch = fragment.facts.get("launch")
        if NAME in getattr(launch, "arguments", {}):
            return None  # the script is told too
    for fragment in view.fragments:
        value = fragment.values.get("precision.mixed")
        if fragment.format in ("accelerate", "shell-launcher") and value is not None and value.value in MIXED:
            return value
    return None


def _default(script: Fragment, source: str) -> object:
    """The default of the argument that the script passes on: of `add_argument`, or of a class's field."""
    module = script.document.module
    if module is None or not source.endswith("." + NAME):
        return None
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Attribute(attr="add_argument"), args=[ast.Constant(value=name), *_]):
                given = {keyword.arg: keyword.value for keyword in node.keywords}.get("default")
                if name == f"--{NAME}" and isinstance(given, ast.Constant):
                    return given.value
            case ast.AnnAssign(target=ast.Name(id="mixed_precision"), value=ast.Constant(value=value)):
                return value
    return None
