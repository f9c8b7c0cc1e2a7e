"""A job trains on a GPU and asks for none."""

import re
from collections.abc import Iterator

from trainlint.api import Found, Fragment, Place, RunView, models, rule, started

FLAGS = frozenset(
    ("bf16", "fp16", "tf32", "fp8", "load_in_4bit", "load_in_8bit", "quantization_bit", "deepspeed", "flash_attn")
)
"""Arguments of programs that need a GPU."""
OFF = ("false", "no", "0", "none", "False", "None", "")
GPUS = re.compile(
    r"gpu|\bgres|nvidia(?!/)|amd\.com|(?<![a-z])tpu|neuron|gaudi|habana|exclusive|resourceClaims|a100|h100|v100", re.I
)
"""What may ask for a device in a way not known here (`--output` asks for no TPU, `nvidia/` is an image's owner)."""
LARGE = 1_000_000_000
"""Parameters above which nobody trains on a CPU."""


@rule(severity="error")
def check(view: RunView) -> Iterator[Found]:
    for fragment in view.fragments:
        at = _without(fragment)
        why = next(_reasons(fragment), None)
        if at is None or why is None:
            continue
        text, place = why
        slurm = bool(started.directives(fragment))
        yield Found(
            at=at,
            message=f"{text} needs a GPU, and this job asks for none",
            help="add `#SBATCH --gres=gpu:1`"
            if slurm
            else {"skypilot": "add `accelerators:`", "kubernetes": "add `nvidia.com/gpu: 1` to the limits"}.get(
                fragment.format, "ask for one"
            ),
            notes=[(place, "here")],
            severity="warning" if slurm else "error",
        )


def _without(fragment: Fragment) -> Place | None:
    """Where a job's request stands, if it surely asks for no device."""
    asked = fragment.values.get("launch.accelerated")
    if asked is not None:
        known = fragment.values.get("device.name") or fragment.values.get("launch.gpus")
        return asked.place if asked.value is False and known is None and not _named(fragment) else None
    found = started.directives(fragment)
    if found and not _named(fragment):
        return next(iter(found.values())).place
    return None


def _named(fragment: Fragment) -> bool:
    return bool(GPUS.search(fragment.document.text))


def _reasons(fragment: Fragment) -> Iterator[tuple[str, Place]]:
    """What in the commands only a GPU does."""
    for start in started.trainings(fragment):
        if "use_cpu" in start.arguments or "no_cuda" in start.arguments or "cpu" in start.options:
            continue
        for name, option in start.arguments.items():
            value = option.values[0].text if option.values else "true"
            if name in FLAGS and value is not None and value not in OFF:
                yield f"`{option.key}`", option.place
            model = models.find(value) if name in ("model_name_or_path", "model", "model_id") and value else None
            if model is not None and model.parameters > LARGE:
                yield f"a model of {model.parameters / 1e9:.3g} B parameters", option.place
        if start.launcher == "deepspeed":
            yield "`deepspeed`", start.word.place
