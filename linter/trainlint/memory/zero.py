"""Runs under DeepSpeed ZeRO, stages 1 to 3: accounting of its buffers around a walk of the model in its 16-bit dtype.

N parameters, W devices, b bytes of the engine's dtype. From source only, neither simulated nor measured; hence the
spread. Source: DeepSpeed 0.19.8, runtime/zero/stage_1_and_2.py, stage3.py, parameter_offload.py, config.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from trainlint.memory.account import SIZES, rounded
from trainlint.memory.families import Family
from trainlint.memory.graph import Parameter, Tensor
from trainlint.memory.ledger import ALWAYS, STEP, Budget
from trainlint.memory.model import group_of
from trainlint.memory.optimizers import state_bytes, state_dtype, step_bytes
from trainlint.memory.setup import Setup
from trainlint.memory.walk import Walk

SPREAD = (0.9, 1.12)
"""How far DeepSpeed's true figure may lie from this account."""

SUB_GROUP = 1_000_000_000
"""Elements that stage 3 updates at a time (sub_group_size's default)."""

BACKWARD = ("loss_backward", "backward")


def stage_of(setup: Setup) -> int:
    """1, 2 or 3."""
    return int(setup.sharding[-1])


def zero(
    budget: Budget, source: Family, setup: Setup, every_layer: bool, register: bool, see: Callable[[Budget, Walk], None]
) -> list[Parameter]:
    """Fill the budget of one device; returns the model's parameters. The engine casts every parameter to its dtype."""
    stage, world = stage_of(setup), max(1, setup.data)
    dtype = setup.compute_dtype
    plain = dataclasses.replace(setup, weights=dtype, compute=dtype, autocast=False, adapter_dtype=dtype)
    walk = Walk(source.architecture, source.config, plain, every_layer, register)
    pieces: list[Tensor] = []

    def reduced(parameter: Parameter) -> None:
        """Stages 2 and 3 keep only this device's part of a reduced gradient."""
        parameter.gradient = None
        if stage == 2 and not walk.accumulating:
            walk.tape.memory.label = "gradient shards"
            pieces.append(walk.tape.new(-(-parameter.elements // world), parameter.dtype))

    if stage > 1:
        walk.tape.on_gradient = reduced
    walk.run()
    see(budget, walk)
    walk.release()
    parameters = list(walk.parameters.values())
    trained = [p for p in parameters if p.trained]
    elements = sum(p.elements * p.copies for p in trained)
    size = SIZES[dtype]
    _weights(budget, parameters, setup, stage, world, size)
    _gradients(budget, walk, elements, stage, world, size)
    _states(budget, setup, trained, elements, stage, world, size)
    overlap = setup.overlap_comm if setup.overlap_comm is not None else stage == 3
    buckets = 2 if overlap and stage < 3 else 1
    bucket = buckets * setup.reduce_bucket
    phases = ALWAYS if stage == 3 else BACKWARD
    budget.add("reduce buckets", dtype, bucket, rounded(bucket * size), phases, f"{setup.reduce_bucket} x {buckets}")
    return parameters


def _weights(budget: Budget, parameters: list[Parameter], setup: Setup, stage: int, world: int, size: int) -> None:
    elements = sum(p.elements * p.copies for p in parameters)
    whole = sum(p.nbytes * p.copies for p in parameters)
    if stage < 3:
        budget.add("weights", setup.compute_dtype, elements, whole, ALWAYS, f"{elements} x {size} B on every device")
        return
    if setup.quantization_bits and setup.adapted:
        _whole(budget, elements, whole)
    held = 0 if setup.offload_parameters else rounded(-(-whole // world))
    budget.add("weight shards", setup.compute_dtype, elements // world, held, ALWAYS, f"{elements} / {world} devices")
    small = sum(p.elements * p.copies for p in parameters if p.kind in ("norm", "bias"))
    budget.add("persistent parameters", setup.compute_dtype, small, small * size, ALWAYS, "too small to be sharded")
    blocks: dict[str, int] = {}
    for p in parameters:
        blocks[group_of(p.name)] = blocks.get(group_of(p.name), 0) + p.nbytes
    block = max((value for name, value in blocks.items() if name != "root"), default=0)
    head = max((p.nbytes for p in parameters if p.kind in ("head", "embedding")), default=0)
    ahead = setup.prefetch_bucket * size
    formula = "one block, and what is fetched ahead"
    budget.add("gathered weights", setup.compute_dtype, block // size, block + ahead, ("forward", "backward"), formula)
    budget.add("gathered output head", setup.compute_dtype, head // size, head + ahead, ("loss", "loss_backward"))


def _whole(budget: Budget, elements: int, whole: int) -> None:
    """A quantized model is not built under `zero.Init` (transformers, modeling_utils.py): DeepSpeed moves all of it to
    each device before it partitions, offloaded or not (runtime/engine.py, _configure_distributed_model).
    """
    budget.see("load", 0)
    budget.add("model before it is partitioned", "uint8", elements, whole, ("load",), "whole on every device")


def _gradients(budget: Budget, walk: Walk, elements: int, stage: int, world: int, size: int) -> None:
    dtype = walk.setup.gradients or walk.setup.weights
    part = rounded(-(-elements // world) * size)
    always = (*STEP, "optimizer")
    if stage == 1:
        phases = always if walk.accumulating else ("optimizer",)
        budget.add("gradients", dtype, elements, rounded(elements * size), phases, f"{elements} x {size} B")
    elif stage == 2:
        phases = always if walk.accumulating else ("optimizer",)
        budget.add("gradient shards", dtype, elements // world, part, phases, f"{elements} / {world} devices")
    else:
        budget.add("gradient shards", dtype, elements // world, part, ALWAYS, "allocated once")


def _states(
    budget: Budget, setup: Setup, trained: list[Parameter], elements: int, stage: int, world: int, size: int
) -> None:
    if setup.offload_optimizer:
        budget.add("loss scale and counters", "float32", 0, 512)
        return
    part = -(-elements // world)
    budget.add("master weights", "float32", part, rounded(4 * part), ALWAYS, f"{elements} x 4 B / {world} devices")
    flat = Parameter("partition", "linear", part, "float32", (part,), True, rounded(4 * part))
    state = state_bytes(setup.optimizer, [flat], setup.momentum)
    held = state_dtype(setup.optimizer, "float32")
    budget.add("optimizer state shards", held, part, state, ALWAYS, setup.optimizer)
    at_once = min(part, SUB_GROUP) if stage == 3 else part
    flatten = 0 if stage == 3 else rounded(part * size) * (2 if stage == 1 else 1)
    shard = Parameter("partition", "linear", at_once, "float32", (at_once,), True, 0)
    step = flatten + rounded(4 * at_once) + step_bytes(setup.optimizer, [shard], setup.foreach)
    budget.add("optimizer temporaries", "float32", at_once, step, ("optimizer",), "flattened and fp32 gradients")
    budget.add("loss scale and counters", "float32", 0, 512)
