"""The knobs that lower a run's memory, each with its settings and what they cost: first those that train the same.

Prices: transformers' page on gradient checkpointing (about 20 % slower) and Chen et al. 2016, arXiv 1604.06174 (30 %);
Liger Kernel, arXiv 2410.10989; 8-bit optimizers, arXiv 2110.02861; ZeRO, arXiv 1910.02054 (stages 1 and 2 send what
data parallelism sends, stage 3 half as much again); FlashAttention, arXiv 2205.14135; QLoRA, arXiv 2305.14314.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainlint.facts import models
from trainlint.run import TrainingRun, Value, known

Values = Mapping[str, object]

ADAM = ("adamw_torch", "adamw_torch_fused", "adamw_hf", "adamw_apex_fused", "adamw_anyprecision", "adamw")
SHORTEST = 512
"""Tokens below which no length is proposed where the data are not known."""
ROUND = 64
"""A length from the data is rounded up to a multiple of this, as tensor cores like it."""
SMALLER = 4
"""Smaller models that are tried at most."""


@dataclass(frozen=True, slots=True)
class Knob:
    """One thing to turn: values by path, the mildest setting first. `keeps`: the training stays what it is.

    `phrase` says what to do where the user's own file has no word for it, because it is set elsewhere; `against` names
    knobs that do not go together with this one.
    """

    name: str
    settings: tuple[Values, ...]
    cost: str
    keeps: bool = True
    phrase: str = ""
    against: str = ""


def knobs(run: TrainingRun) -> tuple[Knob, ...]:
    """What can be turned in a run, the cheapest first, those that change the training last."""
    found = (*_batch(run), *_recomputing(run), *_kernels(run), *_states(run), *_sharding(run), *_known_length(run))
    return (*found, *_length(run), *_adapters(run), *_models(run))


def _batch(run: TrainingRun) -> Iterator[Knob]:
    """The micro batch halved as often as it goes, the effective batch kept."""
    micro, steps = known(run.batch.micro), known(run.batch.accumulation)
    if micro is None or micro <= 1:
        return
    sizes = []
    size = micro
    while size > 1 and size % 2 == 0:
        size //= 2
        sizes.append(size)
    if size > 1:
        sizes.append(1)
    settings = tuple(
        {"batch.micro": size} | ({} if steps is None else {"batch.accumulation": steps * micro // size})
        for size in sizes
    )
    yield Knob("micro batch", settings, "the same steps in smaller pieces: slower where they leave the device idle")


def _recomputing(run: TrainingRun) -> Iterator[Knob]:
    if _word(run.checkpointing.kind) != "full":
        cost = "20 to 30 % slower: the forward pass runs twice"
        yield Knob("activation checkpointing", ({"checkpointing.kind": "full"},), cost)
    if _word(run.checkpointing.kind) == "full" and not known(run.activation_offload, False):
        cost = "slower: block inputs travel to the host and back"
        yield Knob("activation offloading", ({"activation_offload": True},), cost)


def _kernels(run: TrainingRun) -> Iterator[Knob]:
    if _word(run.kernels) in ("", "none"):
        cost = "none, up to 20 % faster by its authors: logits are never whole"
        yield Knob("fused kernels", ({"kernels": "liger", "loss": "liger"},), cost)
    if _word(run.attention) == "eager":
        yield Knob("attention kernel", ({"attention": "sdpa"}, {"attention": "flash"}), "none, it is faster")


def _states(run: TrainingRun) -> Iterator[Knob]:
    names = [str(value.value) for value in run.possible.get("optimizer.name", ())] or [_word(run.optimizer.name)]
    weights, compute = _word(run.precision.weights), _word(run.precision.compute)
    adapted = _word(run.method) in ("lora", "qlora")
    if adapted and weights == "float32" and compute == "bfloat16" and known(run.quantization.bits) is None:
        cost = "none: products of the frozen weights run in bfloat16 already"
        yield Knob("frozen weights in bfloat16", ({"precision.weights": "bfloat16"},), cost)
    if adapted or not all(name in ADAM for name in names) or _word(run.sharding.kind) not in ("", "none", "zero0"):
        return  # bitsandbytes' optimizers know nothing of shards
    if "adamw_torch_fused" not in names:
        yield Knob("fused optimizer", ({"optimizer.name": "adamw_torch_fused"},), "none, its step is faster")
    cost = "moments in 8 bits: trains like 32 bits by its authors"
    yield Knob("8-bit optimizer", ({"optimizer.name": "adamw_bnb_8bit"},), cost)


def _sharding(run: TrainingRun) -> Iterator[Knob]:
    """ZeRO over the devices that there are; not of weights that bitsandbytes packed, which it leaves whole."""
    count, kind = known(run.device.count) or 1, _word(run.sharding.kind)
    if kind in ("zero2", "zero3") and _word(run.sharding.offload_optimizer) in ("", "none"):
        cost = "slower steps: the optimizer runs on the host"
        phrase = "set `zero_optimization.offload_optimizer.device: cpu` in the DeepSpeed config"
        yield Knob("optimizer on the host", ({"sharding.offload_optimizer": "cpu"},), cost, phrase=phrase)
    data = known(run.parallel.data, count) or 1
    if kind not in ("", "none", "zero0", "zero1", "zero2") or count < 2 or data < 2:
        return
    if known(run.quantization.bits) is not None:
        return
    cost = "stage 2 sends what data parallelism sends, stage 3 half as much again"
    stages = ("zero3",) if kind == "zero2" else ("zero2", "zero3")
    settings = tuple({"sharding.kind": stage, "parallel.data": data} for stage in stages)
    yield Knob(
        "sharding",
        settings,
        cost,
        phrase=f"shard with ZeRO-3 or FSDP over the {data} devices",
        against="8-bit optimizer",
    )


def _known_length(run: TrainingRun) -> Iterator[Knob]:
    """What the longest sample needs, where the data are known."""
    length, longest = known(run.length.max), run.data.tokens.get("max")
    if length is None or longest is None or known(run.data.estimated, False):
        return
    shorter = -(-longest.value // ROUND) * ROUND
    if shorter < length:
        yield Knob("length", ({"length.max": shorter},), f"none: the longest sample has {longest.value} tokens")


def _length(run: TrainingRun) -> Iterator[Knob]:
    """Halves of the length, down to what the data are thought to need."""
    length, longest = known(run.length.max), run.data.tokens.get("max")
    if length is None or (longest is not None and not known(run.data.estimated, False)):
        return
    least = max(SHORTEST, longest.value if longest is not None else 0)
    halves = [size for size in (1 << power for power in range(17, 8, -1)) if least <= size < length]
    if halves:
        settings = tuple({"length.max": size} for size in halves)
        yield Knob("length", settings, "trains something else: longer samples are cut or left out", keeps=False)


def _adapters(run: TrainingRun) -> Iterator[Knob]:
    method = _word(run.method)
    scripted = run.root_format == "hf-trainer"  # arguments alone have no words for adapters
    lora = {
        "method": "lora",
        "adapter.rank": known(run.adapter.rank, 16),
        "adapter.targets": known(run.adapter.targets, ("all-linear",)),
        "adapter.dtype": "float32",
    }
    if method == "full":
        single = _word(run.precision.weights) == "float32" and _word(run.precision.compute) == "bfloat16"
        settings = (lora, {**lora, "precision.weights": "bfloat16"}) if single else (lora,)
        phrase = "train LoRA adapters, which the script sets up" if scripted else ""
        yield Knob("LoRA", settings, "trains adapters only", keeps=False, phrase=phrase)
    if method in ("full", "lora") and known(run.quantization.bits) is None and not known(run.model.quantized):
        quantized = {**lora, "method": "qlora", "quantization.bits": 4, "quantization.type": "nf4"}
        if method == "lora":
            cost = "adapters over weights in 4 bits: slower, they are expanded in every pass"
        else:
            cost = "trains adapters only, over weights in 4 bits that are expanded in every pass"
        phrase = "train LoRA adapters over 4-bit weights, which the script sets up" if scripted else ""
        yield Knob("QLoRA", (quantized,), cost, keeps=False, phrase=phrase)


def _models(run: TrainingRun) -> Iterator[Knob]:
    """Smaller models of the same name and architecture, the largest first."""
    named = known(run.model.id)
    model = models.find(named) if named is not None else None
    if model is None or model.by_name or model.id != named:
        return
    smaller = models.smaller(model.id)[:SMALLER]
    settings = tuple(
        {"model.id": other.id, "model.config": other.config, "model.parameters": other.parameters} for other in smaller
    )
    if settings:
        yield Knob("a smaller model", settings, "another model", keeps=False)


def _word(value: Value[str] | None) -> str:
    return "" if value is None else value.value
