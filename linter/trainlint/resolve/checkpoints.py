"""How large one checkpoint of a run is on disk."""

from __future__ import annotations

from trainlint.formats import Draft

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
STATES = {"adamw": 2.0, "adam": 2.0, "lion": 1.0, "adafactor": 0.0, "sgd": 0.0}
"""Optimizer states in copies of the weights, by the first part of the optimizer's name."""


def add_checkpoint(draft: Draft) -> None:
    """Derive `checkpoint.bytes` for a model that is trained in full: its weights, and the optimizer's states.

    DeepSpeed in 16 bits saves the weights, a float32 copy of them and two float32 moments. Adapters, and what is only
    assumed to be trained in full, stay unknown.
    """
    method, parameters = draft.values.get("method"), draft.get("model.parameters")
    if method is None or method.value != "full" or method.origin == "assumed" or not isinstance(parameters, int):
        return
    weights = BYTES.get(str(draft.get("precision.weights")))
    kind, compute = str(draft.get("sharding.kind")), draft.get("precision.compute")
    if weights is None:
        return
    if kind.startswith("zero") and compute in ("bfloat16", "float16"):
        each, held = 2.0, "16-bit weights, float32 weights and moments under DeepSpeed"
        each += 0.0 if draft.get("checkpoint.only_model") is True else 12.0
    else:
        sizes = {0.0} if draft.get("checkpoint.only_model") is True else _states(draft, weights)
        if len(sizes) != 1:
            return
        each = weights + sizes.pop()
        held = f"{each:g} bytes a parameter"
    draft.derive("checkpoint.bytes", round(each * parameters), held, "byte")


def _states(draft: Draft, weights: int) -> set[float]:
    """Bytes a parameter of the optimizer's states, for each optimizer that it may be; empty where one is not known."""
    known = draft.values.get("optimizer.name")
    found: set[float] = set()
    for one in (known,) if known is not None else draft.possible.get("optimizer.name", ()):
        name = str(one.value).removeprefix("paged_")
        copies = STATES.get(name.partition("_")[0])
        if copies is None:
            return set()
        found.add(2.0 if "8bit" in name else weights * copies)
    return found
