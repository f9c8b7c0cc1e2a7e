"""From a model's config and a setup to the peak of one device."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from trainlint.memory.account import SIZES, Totals, rounded
from trainlint.memory.families import Family, family
from trainlint.memory.graph import Parameter
from trainlint.memory.ledger import ALWAYS, REPORTED, STEP, Budget, Ledger
from trainlint.memory.optimizers import known, state_bytes, state_dtype, step_bytes
from trainlint.memory.parallel import spreads
from trainlint.memory.setup import DTYPES, Setup
from trainlint.memory.sharded import fully_sharded
from trainlint.memory.walk import Walk
from trainlint.memory.zero import SPREAD, zero

Config = Mapping[str, object]

WEIGHTS = {
    "linear": "weights of linear layers", "quantized": "quantized weights", "adapter": "adapter weights",
    "embedding": "weights of embeddings", "positions": "weights of embeddings", "head": "weights of the output head",
    "norm": "weights of norms and biases", "bias": "weights of norms and biases", "experts": "weights of experts",
    "router": "weights of experts", "other": "weights of norms and biases", "frozen": "weights of embeddings",
}  # fmt: skip
"""What a report calls a parameter, by its kind."""


LIKE_LORA = ("lora", "dora", "rslora", "pissa", "olora", "loftq", "eva")
"""Kinds of adapters that hold and keep what LoRA does; DoRA has a rule of its own."""


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
    held: int = 0
    """Of `allocated`: weights, gradients, states and inputs, which are counted, not walked."""


class Answer:
    """A budget with what has to be said about it."""

    __slots__ = ("assumptions", "budget", "parameters", "spread", "unknown", "warnings")

    def __init__(self, source: Family) -> None:
        self.budget = Budget()
        self.parameters: list[Parameter] = []
        self.assumptions = list(source.assumptions)
        self.warnings: list[str] = []
        self.unknown: list[str] = []
        self.spread = [1.0 - source.spread, 1.0 + source.spread]

    def widen(self, low: float, high: float, reason: str) -> None:
        """Something that only source backs: the true figure lies between these factors of ours."""
        self.spread[0] *= low
        self.spread[1] *= high
        self.assumptions.append(reason)


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the cyclic garbage collector, which finds nothing in a walk and costs a quarter of its time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


ANSWERED: dict[tuple[str, Setup], Estimate] = {}
"""What was asked last: a run's low, likely and high end are often one setup, and searches come back to the same."""
REMEMBERED = 256


def estimate(config: Config, setup: Setup) -> Estimate:
    """The peak of torch's allocator, in bytes a device, over two training steps and what else the setup runs."""
    key = repr(config), setup
    try:
        found = ANSWERED.get(key)
    except TypeError:  # a knob holds something that a config should not, a list or a mapping
        return _estimated(config, setup)
    if found is None:
        found = _estimated(config, setup)
        if len(ANSWERED) >= REMEMBERED:
            ANSWERED.pop(next(iter(ANSWERED)))
        ANSWERED[key] = found
    return found


def _estimated(config: Config, setup: Setup) -> Estimate:
    with uncollected():
        answer = solve(config, setup)
    phases: dict[str, int] = {}
    totals = answer.budget.totals()
    for phase, peak in totals.items():
        name = REPORTED[phase]
        phases[name] = max(phases.get(name, 0), peak)
    top = max(phases, key=lambda phase: phases[phase])
    allocated = phases[top]
    return Estimate(
        allocated=allocated,
        low=round(allocated * answer.spread[0]),
        high=round(allocated * answer.spread[1]),
        peak_phase=top,
        phases=phases,
        parameters=sum([p.elements * p.copies for p in answer.parameters]),
        trainable=sum([p.elements * p.copies for p in answer.parameters if p.trained and p.optimized]),
        assumptions=tuple(answer.assumptions),
        warnings=tuple(answer.warnings),
        unknown=tuple(answer.unknown),
        held=answer.budget.held(totals),
    )


def ledger(config: Config, setup: Setup) -> Ledger:
    """What lives at the peak: entries whose bytes sum up to it exactly."""
    with uncollected():
        return solve(config, setup, register=True).budget.ledger()


def solve(config: Config, setup: Setup, every_layer: bool = False, register: bool = False) -> Answer:
    """Walk the model as the setup runs it."""
    if setup.checkpointing == "selective":
        return _selective(config, setup, every_layer, register)
    source = family(config)
    answer = Answer(source)
    setup = _held_dtypes(setup, answer)
    for low, high, reason in spreads(setup):
        answer.widen(low, high, reason)
    if setup.compiled:
        answer.widen(0.75, 1.05, "torch.compile fuses operations, so fewer activations are kept")
    if not known(setup.optimizer):
        answer.widen(0.8, 1.2, f"optimizer `{setup.optimizer}` is taken for AdamW")
    if setup.sharding in ("fsdp", "fsdp2") and setup.data > 1:
        answer.parameters = fully_sharded(answer.budget, source, setup, every_layer, register, seen)
        return answer
    if setup.sharding in ("zero1", "zero2", "zero3"):
        answer.parameters = zero(answer.budget, source, setup, every_layer, register, seen)
        answer.widen(*SPREAD, "DeepSpeed's buffers are counted from its source, not simulated")
        return answer
    if setup.eval_only:
        walk = Walk(source.architecture, source.config, setup)
        walk.tape.recording = False
        walk.forward()
        answer.parameters = list(walk.parameters.values())
        weights(answer.budget, answer.parameters, codes=codes(setup))
        evaluation(answer.budget, source, setup, every_layer, register)
        return answer
    walk = Walk(source.architecture, source.config, setup, every_layer, register)
    walk.run()
    answer.parameters = list(walk.parameters.values())
    seen(answer.budget, walk)
    budget = answer.budget
    weights(budget, answer.parameters, codes=codes(setup))
    frozen = walk.reference_parameters
    size = sum(p.nbytes * p.copies for p in frozen)
    count = sum(p.elements * p.copies for p in frozen)
    budget.add("reference model", walk.weights, count, size, ALWAYS, f"{count} x {SIZES[walk.weights]} B")
    training(budget, walk)
    walk.release()
    if setup.sharding == "none" and setup.data > 1:
        _replicated(budget, walk)
    if setup.eval_steps:
        evaluation(budget, source, setup, every_layer, register)
    return answer


def _held_dtypes(setup: Setup, answer: Answer) -> Setup:
    """Dtypes that are not held here (fp8) are counted as bf16, which what is saved for the backward mostly is."""
    for name in ("weights", "compute", "adapter_dtype", "reduce_dtype"):
        dtype = getattr(setup, name)
        if dtype and dtype not in DTYPES:
            setup = dataclasses.replace(setup, **{name: "bfloat16"})  # type: ignore[arg-type]
            answer.widen(0.75, 1.1, f"{dtype} {name} counted as bfloat16")
    if setup.adapted and setup.adapter_kind not in LIKE_LORA:
        answer.widen(0.8, 1.1, f"adapter kind `{setup.adapter_kind}` is taken for LoRA")
    return setup


def _selective(config: Config, setup: Setup, every_layer: bool, register: bool) -> Answer:
    """Checkpointing that keeps some results of a block: between full checkpointing and none; likely half way."""
    answer, other = (
        solve(config, dataclasses.replace(setup, checkpointing=kind), every_layer, register)
        for kind in ("full", "none")
    )
    full, whole = answer.budget.totals(), other.budget.totals()
    top, most = max(full.values()), max(whole.values())
    for phase, peak in full.items():
        kept = max(0, whole.get(phase, peak) - peak) // 2
        answer.budget.add(
            "selected activations", "bfloat16", kept // 2, kept, (phase,), "half of what checkpointing saves"
        )
    middle = max(answer.budget.totals().values())
    least, most = min(top, most), max(top, most, middle)
    said = "selective checkpointing: between full checkpointing and none"
    answer.widen(min(1.0, least / middle), most / middle, said)
    return answer


def seen(budget: Budget, walk: Walk) -> None:
    """The walk's phases."""
    memory = walk.tape.memory
    for phase, peak in memory.close().items():
        if phase in REPORTED:
            budget.see(phase, peak, memory.register.pictures.get(phase, {}) if memory.register is not None else None)
    flying = (walk.setup.pipeline - 1) * max(0, walk.forward_bytes)
    budget.add(
        "micro-batches in flight", walk.compute, flying // 2, flying, STEP, "saved activations of the stages to come"
    )
    budget.see("inputs", walk.first_input, {("inputs", "float32"): (walk.first_input, walk.first_input // 4)})
    budget.see("optimizer", 0)
    size = walk.input_bytes or rounded(8 * walk.tokens) * (3 if walk.padded else 2)
    budget.add("inputs", "int64", size // 8, size, STEP, "token ids, labels and padding mask, 8 B each")


def codes(setup: Setup) -> str:
    """What quantized weights are held in, as people call it: nf4, int8, int4."""
    if setup.quantization_bits == 8:
        return "int8"
    if "fp" in setup.quantization_type or "nf" in setup.quantization_type:
        return setup.quantization_type
    named = setup.quantization_bits == 4 and not setup.quantization_type
    return "nf4" if named else f"int{setup.quantization_bits}"


def weights(
    budget: Budget, parameters: Iterable[Parameter], phases: Iterable[str] = ALWAYS, codes: str = "uint8"
) -> None:
    """What the weights take, by kind and dtype; that of quantized ones is `codes`."""
    kinds: dict[tuple[str, str], tuple[int, int]] = {}
    for p in parameters:
        key = WEIGHTS[p.kind], codes if p.kind == "quantized" else p.dtype
        elements, nbytes = kinds.get(key, (0, 0))
        kinds[key] = elements + p.elements * p.copies, nbytes + p.nbytes * p.copies
    for (what, dtype), (elements, nbytes) in kinds.items():
        formula = (
            f"{elements} x {SIZES[dtype]} B" if what != "quantized weights" else f"{elements} codes with their scales"
        )
        budget.add(what, dtype, elements, nbytes, phases, formula)


def evaluation(budget: Budget, source: Family, setup: Setup, every_layer: bool, register: bool) -> None:
    """Batches without a graph; where a metric needs logits, those of all steps are gathered on the device.

    transformers 5.24, trainer_pt_utils.py: EvalLoopContainer concatenates what it has with each step's logits. A fused
    loss that makes no logits is followed by a second forward that does (TRL), or left out (Liger).
    """
    gather, fused = setup.eval_gather, setup.loss not in ("", "full", "shifted")
    again = fused and gather and setup.loss.startswith("trl")
    plain = dataclasses.replace(setup, loss="full") if fused and gather and not again else setup
    walk = _evaluated(source, plain, every_layer, register)
    memory = walk.tape.memory
    best, picture, step = memory.high, _picture(walk), walk.logits_bytes
    if again:
        second = _evaluated(source, plain, every_layer, register, plain_logits=True)
        step = second.logits_bytes
        if second.tape.memory.high > best:
            walk, best, picture = second, second.tape.memory.high, _picture(second)
    dtype = walk.logits_dtype
    labels = rounded(8 * walk.tokens)
    before = (setup.eval_steps - 1) * (step + labels) if gather else 0
    joined = setup.eval_steps * step
    if gather and setup.eval_steps > 1 and 2 * joined > best + (setup.eval_steps - 1) * step:
        best, picture, before = 0, {}, before + 2 * joined - (setup.eval_steps - 1) * step
    key = ("gathered logits", dtype)
    budget.see("evaluation", best + before, {**picture, key: (before, before // SIZES[dtype])} if before else picture)
    size = walk.input_bytes or labels * (3 if walk.padded else 2)
    budget.add("evaluation inputs", "int64", size // 8, size, ("evaluation",), "token ids and labels, 8 B each")


def _evaluated(source: Family, setup: Setup, every_layer: bool, register: bool, plain_logits: bool = False) -> Walk:
    walk = Walk(source.architecture, source.config, setup, every_layer, register, role="evaluation")
    walk.tape.recording = False
    walk.tape.memory.enter("evaluation")
    walk.forward(plain_logits)
    return walk


def _picture(walk: Walk) -> Totals:
    register = walk.tape.memory.register
    return register.pictures.get("evaluation", {}) if register is not None else {}


def _replicated(budget: Budget, walk: Walk) -> None:
    """DistributedDataParallel's gradient buckets: as large as all gradients, which may be views of them."""
    trained = [p for p in walk.parameters.values() if p.trained]
    elements = sum(p.elements * p.copies for p in trained)
    size = sum(p.nbytes * p.copies for p in trained)
    budget.add(
        "gradient buckets",
        trained[0].dtype if trained else "float32",
        elements,
        size,
        ALWAYS,
        "one copy of all gradients",
    )


def gradient_phases(walk: Walk) -> tuple[str, ...]:
    """When whole gradients live that the walk does not count itself."""
    return (*STEP, "optimizer") if walk.accumulating else ("optimizer",)


def training(budget: Budget, walk: Walk) -> None:
    """Gradients, optimizer states and the optimizer's step."""
    setup = walk.setup
    trained = [p for p in walk.parameters.values() if p.trained]
    elements = sum([p.elements * p.copies for p in trained])
    count = sum([p.copies for p in trained])
    dtype = trained[0].dtype if trained else "float32"
    nbytes = sum([rounded(p.elements * SIZES[p.dtype]) * p.copies for p in trained])
    if not setup.in_backward and not walk.bucket_views:
        budget.add("gradients", dtype, elements, nbytes, gradient_phases(walk), f"{elements} trained parameters")
    state = state_bytes(setup.optimizer, trained, setup.momentum)
    held = state_dtype(setup.optimizer, dtype)
    budget.add("optimizer state", held, elements, state, ALWAYS, f"{setup.optimizer}, {elements} trained parameters")
    budget.add("loss scale and counters", "float32", 0, 1024 if setup.grad_scaler else 512)
    if not setup.in_backward:
        _step(budget, setup, trained, count)


def _step(budget: Budget, setup: Setup, trained: list[Parameter], count: int) -> None:
    clipping = (count + 3) * 512 if setup.clip else 0
    temporary = step_bytes(setup.optimizer, trained, setup.foreach)
    what = "optimizer temporaries" if temporary >= clipping else "gradient norms for clipping"
    budget.add(what, "float32", 0, max(temporary, clipping), ("optimizer",), f"{setup.optimizer}, {count} tensors")
