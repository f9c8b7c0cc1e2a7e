"""From a model's config and a setup to the peak of one device."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

from trainlint.memory.account import SIZES, rounded
from trainlint.memory.architecture import Architecture, find
from trainlint.memory.autograd import Parameter
from trainlint.memory.errors import UnknownArchitecture
from trainlint.memory.optimizers import ALIASES, state_bytes, step_bytes
from trainlint.memory.setup import Setup
from trainlint.memory.sharding import Sharding, shard_elements
from trainlint.memory.walk import Walk, group_of

Config = Mapping[str, object]

REPORTED = {
    "inputs": "forward", "forward": "forward", "loss": "loss", "loss_backward": "loss", "backward": "backward",
    "optimizer": "optimizer", "evaluation": "evaluation", "reference": "reference",
}  # fmt: skip
"""What a phase of the walk is called in a report."""


@dataclass(frozen=True)
class Estimate:
    """What a run needs on one device, in bytes.

    `low` and `high` bound what only source, and no simulation, backs; where all is backed they equal `allocated`.
    """

    allocated: int
    low: int
    high: int
    peak_phase: str
    phases: Mapping[str, int]
    parameters: int
    trainable: int
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    static: Mapping[str, int] = field(default_factory=dict)


def estimate(config: Config, setup: Setup, every_layer: bool = False) -> Estimate:
    """The peak of torch's allocator, in bytes a device, for two training steps and what else the setup runs."""
    architecture, config, assumptions = _architecture(config)
    if setup.sharding == "fsdp2":
        return _fully_sharded(architecture, config, setup, every_layer)
    walk = Walk(architecture, config, setup, every_layer)
    peaks = walk.run()
    return _result(walk, peaks, assumptions)


def _architecture(config: Config) -> tuple[Architecture, Config, list[str]]:
    model_type = str(config.get("model_type", ""))
    found = find(model_type)
    if found is None:
        raise UnknownArchitecture(model_type)
    return found, config, []


def _static(walk: Walk) -> dict[str, int]:
    """What lives all the time, by name."""
    setup = walk.setup
    parameters = list(walk.parameters.values())
    trained = [parameter for parameter in parameters if parameter.trained]
    optimizer = ALIASES.get(setup.optimizer, setup.optimizer)
    weights = sum(parameter.nbytes * parameter.copies for parameter in parameters)
    gradients = sum(rounded(p.elements * SIZES[p.dtype]) * p.copies for p in trained)
    state = state_bytes(optimizer, trained, setup.momentum)
    if walk.sharding is not None:  # each rank holds its piece of all that
        world, load = setup.data, SIZES[setup.weights]
        weights = sum(_piece(p, world, load) * p.copies for p in parameters)
        gradients = sum(_piece(p, world, load) * p.copies for p in trained)
        state = 2 * gradients + 512 * sum(p.copies for p in trained)
    other = 512 + (512 if setup.grad_scaler else 0)
    return {"weights": weights, "gradients": gradients, "optimizer state": state, "scalars": other}


def _piece(parameter: Parameter, world: int, size: int) -> int:
    return rounded(shard_elements(parameter.elements, parameter.shape[0], world) * size)


def _result(walk: Walk, peaks: Mapping[str, int], assumptions: list[str]) -> Estimate:
    setup = walk.setup
    parameters = list(walk.parameters.values())
    trained = [parameter for parameter in parameters if parameter.trained]
    count = sum(parameter.copies for parameter in trained)
    parts = _static(walk)
    static = parts["weights"] + parts["optimizer state"] + parts["scalars"]
    inputs = walk.input_bytes or rounded(8 * walk.tokens) * (3 if walk.padded else 2)
    held = parts["gradients"] if walk.accumulating else 0
    inner = {phase: peak + static + held + inputs for phase, peak in peaks.items()}
    optimizer = ALIASES.get(setup.optimizer, setup.optimizer)
    clipping = (count + 3) * 512 if setup.clip else 0
    inner["optimizer"] = static + parts["gradients"] + max(step_bytes(optimizer, trained, setup.foreach), clipping)
    inner["inputs"] = static + held + inputs + walk.first_input
    phases: dict[str, int] = {}
    for phase, peak in inner.items():
        name = REPORTED[phase]
        phases[name] = max(phases.get(name, 0), peak)
    top = max(phases, key=lambda phase: phases[phase])
    return Estimate(
        allocated=phases[top],
        low=phases[top],
        high=phases[top],
        peak_phase=top,
        phases=phases,
        parameters=sum(p.elements * p.copies for p in parameters),
        trainable=sum(p.elements * p.copies for p in trained),
        assumptions=tuple(assumptions),
        static=parts,
    )


def _fully_sharded(architecture: Architecture, config: Config, setup: Setup, every_layer: bool) -> Estimate:
    load, compute = setup.weights, setup.compute_dtype
    mixed = compute != load
    plain = dataclasses.replace(setup, weights=compute, compute=compute, autocast=False, clip=None)
    dry = Walk(architecture, config, plain, every_layer)
    dry.run()
    groups: dict[str, list[tuple[int, int]]] = {"root": []}
    for name, parameter in dry.parameters.items():
        groups.setdefault(group_of(name), []).append((parameter.elements, parameter.shape[0]))
    walk = Walk(architecture, config, plain, every_layer)
    reduce = "float32" if mixed else compute
    walk.sharding = Sharding(
        walk.tape, groups, setup.data, compute, load, reduce, mixed, setup.reshard_after_forward
    )
    peaks = walk.run()
    walk.setup = dataclasses.replace(plain, weights=load)
    return _result(walk, peaks, [])
