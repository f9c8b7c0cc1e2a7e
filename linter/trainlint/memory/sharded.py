"""Runs under FSDP: every device holds its piece of weights, gradients and states; blocks are gathered when they run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from trainlint.memory.account import SIZES, rounded
from trainlint.memory.families import Family
from trainlint.memory.graph import Parameter
from trainlint.memory.ledger import ALWAYS, STEP, Budget
from trainlint.memory.model import group_of
from trainlint.memory.optimizers import state_bytes, state_dtype, step_bytes
from trainlint.memory.setup import Setup
from trainlint.memory.sharding import FlatSharding, Sharding, shard_elements
from trainlint.memory.walk import Walk


def fully_sharded(
    budget: Budget, source: Family, setup: Setup, every_layer: bool, register: bool, see: Callable[[Budget, Walk], None]
) -> list[Parameter]:
    """FSDP1 and FSDP2: a first walk finds the groups, a second one gathers and reduces them; returns the parameters.

    The wrapper's mixed precision stands in for autocast: parameters are gathered in the compute dtype, gradients
    reduced in fp32 where that differs from what is held. Adapters take the dtype of what they sit on. accelerate turns
    autocast on besides, over a policy that gathers in the compute dtype what k-bit preparation has raised
    (accelerate/accelerator.py, prepare_model; utils/dataclasses.py, set_mixed_precision).
    """
    load, compute = setup.weights, setup.compute_dtype
    mixed, flat = compute != load, setup.sharding == "fsdp"
    policy = setup.autocast_dtype is not None
    plain = dataclasses.replace(setup, weights=compute, compute=compute, adapter_dtype=compute)
    plain = dataclasses.replace(plain, quantization_prepared=setup.quantization_prepared and not policy)
    everywhere = flat and setup.adapted and not setup.quantization_bits and setup.wrap != "peft"
    groups = _groups(source, plain, everywhere, every_layer)
    walk = Walk(source.architecture, source.config, plain, every_layer, register)
    walk.dense_gradients = everywhere
    walk.walks_last = True
    reduce = setup.reduce_dtype or ("float32" if mixed else compute)
    reshard = setup.reshard_after_forward and setup.strategy in ("FULL_SHARD", "HYBRID_SHARD")
    kind = FlatSharding if flat else Sharding
    walk.sharding = kind(walk.tape, groups, setup.data, compute, load, reduce, mixed, reshard)
    if flat and setup.adapted and not everywhere and setup.reentrant and setup.checkpointing == "full":
        walk.sharding.keeps_inputs = walk.tokens * _width(walk)
    walk.run()
    see(budget, walk)
    walk.release()
    parameters = list(walk.parameters.values())
    _held(budget, walk, parameters, load)
    left = walk.sharding.whole.get("root")
    if left:
        size = sum(tensor.nbytes for tensor in left)
        budget.add(
            "gathered weights", compute, size // SIZES[compute], size, ("optimizer", "inputs"), "the frozen root"
        )
    return parameters


def _width(walk: Walk) -> int:
    """Elements of a token between blocks."""
    width = walk.sizes.get("hidden")
    return width if isinstance(width, int) else 0


def _groups(source: Family, setup: Setup, everywhere: bool, every_layer: bool) -> dict[str, list[tuple[int, int]]]:
    """Elements and rows of each parameter that is sharded, by group; a quantized weight counts as its packed codes."""
    dry = Walk(source.architecture, source.config, setup, every_layer)
    dry.dense_gradients = everywhere
    dry.walks_last = True
    dry.tape.recording = False
    dry.forward()
    layers: dict[str, list[tuple[int, int]]] = {"root": []}
    for name, parameter in dry.parameters.items():
        layers.setdefault(group_of(name), []).append(_cut(parameter, setup))
    return layers


def _cut(parameter: Parameter, setup: Setup) -> tuple[int, int]:
    if parameter.kind != "quantized":
        return parameter.elements, parameter.shape[0]
    codes = -(-parameter.elements * setup.quantization_bits // 8 // SIZES[setup.weights])
    return codes, codes


def _piece(parameter: Parameter, setup: Setup, world: int) -> int:
    """Elements of one device's piece."""
    elements, rows = _cut(parameter, setup)
    return shard_elements(elements, rows, world)


def _held(budget: Budget, walk: Walk, parameters: list[Parameter], load: str) -> None:
    """What each device holds all the time, and its optimizer's step on its pieces."""
    setup, world = walk.setup, walk.setup.data
    elements = sum(p.elements * p.copies for p in parameters)
    size = sum(rounded(_piece(p, setup, world) * SIZES[load]) * p.copies for p in parameters)
    if setup.offload_parameters:  # shards, their gradients and the optimizer live on the host
        budget.add("loss scale and counters", "float32", 0, 512)
        budget.see("optimizer", 0)
        return
    budget.add("weight shards", load, elements // world, size, ALWAYS, f"{elements} parameters / {world} devices")
    scales = sum(_scales(p, setup) * p.copies for p in parameters if p.kind == "quantized")
    budget.add("quantization scales", "uint8", scales, scales, ALWAYS, "not sharded")
    optimized = [_shard(p, setup, world, load) for p in parameters if p.optimized]
    reduced = [_shard(p, setup, world, load) for p in parameters if p.trained]
    elements = sum(p.elements * p.copies for p in reduced)
    size = sum(p.nbytes * p.copies for p in reduced)
    if walk.accumulating and setup.sharding == "fsdp":  # no_sync: whole gradients are kept between micro-batches
        whole = sum(rounded(p.elements * SIZES[p.dtype]) * p.copies for p in parameters if p.trained)
        budget.add("unsharded gradients", setup.weights, elements * world, whole, STEP, "kept whole under no_sync")
    phases = (*STEP, "optimizer") if walk.accumulating else ("optimizer",)
    budget.add("gradient shards", load, elements, size, phases, "as the weight shards")
    state = state_bytes(setup.optimizer, optimized, setup.momentum)
    held = state_dtype(setup.optimizer, load)
    budget.add("optimizer state shards", held, elements, state, ALWAYS, setup.optimizer)
    step = max(
        step_bytes(setup.optimizer, optimized, setup.foreach),
        512 * sum(p.copies for p in optimized) if setup.clip else 0,
    )
    budget.add("optimizer temporaries", load, 0, step, ("optimizer",), setup.optimizer)
    budget.add("loss scale and counters", "float32", 0, 512)


def _shard(parameter: Parameter, setup: Setup, world: int, load: str) -> Parameter:
    pieces = _piece(parameter, setup, world)
    rows = max(1, -(-parameter.shape[0] // world))
    shape = (rows, *parameter.shape[1:])
    size = rounded(pieces * SIZES[load])
    out = Parameter(parameter.name, parameter.kind, pieces, load, shape, True, size)
    out.copies = parameter.copies
    return out


def _scales(parameter: Parameter, setup: Setup) -> int:
    return parameter.nbytes - rounded(-(-parameter.elements * setup.quantization_bits // 8))
