"""The same run with other values, as the command line gives them: `batch.micro=1`, in the words of a run file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from trainlint.documents import from_text
from trainlint.errors import TrainlintError
from trainlint.formats import trainlint_run
from trainlint.run import TrainingRun, known

_NEXT = re.compile(r",(?=[a-z_.]+=)")
"""Between two assignments; a value may hold commas of its own."""

Values = Mapping[str, object]


def assignments(text: str) -> tuple[str, ...]:
    """`batch.micro=1,checkpointing=true` as its assignments."""
    return tuple(part.strip() for part in _NEXT.split(text) if part.strip())


def values_of(said: Iterable[str]) -> dict[str, object]:
    """Assignments as values by path. Raises TrainlintError for a path that no run has, or a value of another kind."""
    found: dict[str, object] = {}
    for text in said:
        path, equals, value = text.partition("=")
        if not equals or not path.strip() or not value.strip():
            raise TrainlintError(f"`{text}` is no assignment: write `batch.micro=1`")
        document = from_text("--set", f"trainlint: run\n{path.strip()}: {value.strip()}\n", "yaml")
        root = document.roots[0] if document.roots else None
        if document.problems or not trainlint_run.recognise(document, root):
            raise TrainlintError(f"`{text}` is no assignment: write `batch.micro=1`")
        fragment = trainlint_run.read(document, root)
        faults = fragment.facts["faults"]
        if isinstance(faults, list) and faults:
            raise TrainlintError(str(faults[0][1]))
        found.update({path: value.value for path, value in fragment.values.items()})
    return found


def completed(run: TrainingRun, values: Values) -> dict[str, object]:
    """The values with what follows from them: a device's memory, a model's shape, shards over the devices there are."""
    made = dict(values)
    if "model.id" in made:
        made = {**_model(str(made["model.id"])), **made}
    if "device.name" in made and "device.memory" not in made:
        made.update(_device(str(made["device.name"])))
    if "device.memory" in made:
        made.setdefault("device.memory_high", made["device.memory"])
    if "device.count" in made:
        made.setdefault("parallel.data", made["device.count"])
    sharded = made.get("sharding.kind") not in (None, "none", "zero0", "device-map")
    if sharded and run.parallel.data is None and run.device.count is not None:
        made.setdefault("parallel.data", run.device.count.value)
    if made.get("kernels") == "liger":
        made.setdefault("loss", "liger")
    if made.get("method") in ("lora", "qlora") and known(run.method, "full") == "full":
        made.setdefault("adapter.dtype", "float32")
    if made.get("method") == "qlora" and run.quantization.bits is None:
        made.setdefault("quantization.bits", 4)
        made.setdefault("quantization.type", "nf4")
    return made


def _model(name: str) -> dict[str, object]:
    from trainlint.facts import models

    model = models.find(name)
    if model is None:
        near = ", ".join(f"`{one}`" for one in models.nearest(name))
        raise TrainlintError(f"no model `{name}` is known{f', near it are {near}' if near else ''}")
    made: dict[str, object] = {"model.config": model.config, "model.parameters": model.parameters}
    if model.positions:
        made["model.shape.positions"] = model.positions
    return made


def _device(name: str) -> dict[str, object]:
    from trainlint.facts import devices

    match = devices.match(name)
    if match is None or match.device.memory is None:
        raise TrainlintError(f"no device `{name}` is known: `trainlint devices` lists them")
    low, high = match.device.memory
    return {"device.memory": low, "device.memory_high": high}
