"""What a complete config leaves open: versions of libraries, and who wraps the model, where memory hangs on them.

Each doubt is a knob with its lowest, likeliest and highest setting. What a version decides is no doubt where the
version is known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from trainlint.facts.versions import parse, version
from trainlint.run import TrainingRun

Words = Mapping[str, object]

ADAPTERS = ("lora", "qlora")
WRITTEN_OUT = ("gpt2", "phi")
"""Model types whose usual activation, gelu_new, transformers writes out in Python and others run as one kernel."""
EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")


@dataclass(frozen=True, slots=True)
class Doubt:
    """A knob (a path of the run vocabulary or of the setup), its three settings, and what is said of it."""

    path: str
    low: object
    likely: object
    high: object
    said: str


def doubts(run: TrainingRun, config: Words, words: Words, given: Collection[str]) -> Iterator[Doubt]:
    """The doubts of a run; `given` are the paths that are known, or open already."""
    activation = config.get("hidden_act") or config.get("activation_function")
    written_out = activation == "gelu_new" or (activation is None and config.get("model_type") in WRITTEN_OUT)
    if written_out and run.root_format == "trainlint-run":  # which does not say whose model runs
        yield Doubt("one_gelu", True, False, False, "the activation is written out in Python, as transformers does")
    if words.get("method") in ADAPTERS and words.get("sharding.kind") == "fsdp":
        yield from _wrapped(run, words, given)
    if words.get("method") == "qlora" and words.get("quantization.bits") == 4:
        yield from _packed(run, config, words)


def since(run: TrainingRun, package: str, release: str) -> bool | None:
    """Whether the installed package is of that release or later; None where that is not known."""
    pin = run.get(f"versions.{package}")
    wanted, bound = parse(str(pin.value)) if pin is not None else None, version(release)
    if wanted is None or bound is None:
        return None
    lowest, highest = wanted.lowest, wanted.highest
    if lowest is not None and lowest >= bound:
        return True
    return False if highest is not None and highest < bound else None


def _wrapped(run: TrainingRun, words: Words, given: Collection[str]) -> Iterator[Doubt]:
    """Adapters under FSDP1: how units are cut, and whether checkpointing is reentrant, decide what stays alive.

    Where autocast is on besides FSDP's own mixed precision, accelerate wraps: then the Trainer cuts units as PEFT does
    (transformers, trainer.py), and was reentrant by default as long as FSDP1 was its default (modeling_utils.py, 4.x).
    """
    trainer = bool(words.get("precision.autocast"))
    if "sharding.wrap" not in given and not words.get("quantization.bits"):
        said = "as PEFT cuts them" if trainer else "blocks with their adapters"
        yield Doubt(
            "sharding.wrap", "peft", "peft" if trainer else "", "peft" if trainer else "", f"FSDP units: {said}"
        )
    if words.get("checkpointing.kind") == "full" and "checkpointing.reentrant" not in given:
        trainer = trainer and since(run, "transformers", "5") is not True
        yield Doubt(
            "checkpointing.reentrant", trainer, trainer, True, f"reentrant checkpointing: {'yes' * trainer or 'no'}"
        )


def _packed(run: TrainingRun, config: Words, words: Words) -> Iterator[Doubt]:
    """4-bit bases of bitsandbytes.

    Until 0.43.2 each packed linear layer kept its input (pull request 1270). Experts are linear layers, and packed, in
    transformers 4; in 5 they are one tensor, and are not. TRL until 0.24 turned the embeddings back to 16 bits after
    k-bit preparation, where bf16 was on, so the blocks' stream is 16 bits wide (trl/trainer/utils.py,
    peft_module_casting_to_bf16).
    """
    if not since(run, "bitsandbytes", "0.43.2"):
        old = since(run, "bitsandbytes", "0.43.2") is False
        yield Doubt("quantization_keeps_inputs", old, old, True, "")
    experts, text = words.get("quantization.experts"), config.get("text_config")
    shape = text if isinstance(text, Mapping) else config
    if experts is not True and any(shape.get(name) for name in EXPERTS):
        new = since(run, "transformers", "5")
        if new is False:
            yield Doubt("quantization.experts", True, True, True, "experts are packed, as transformers 4 does")
        elif new is None:  # accelerate's FSDP1 is of transformers 4's time
            old = words.get("sharding.kind") == "fsdp" and bool(words.get("precision.autocast"))
            said = f"experts are {'' if old else 'not '}packed, as transformers {4 if old else 5} does"
            yield Doubt("quantization.experts", True, old, False, said)
    autocast = words.get("precision.autocast") and words.get("precision.compute") == "bfloat16"
    if words.get("quantization.prepared") and autocast and since(run, "trl", "0.25") is not True:
        yield Doubt("quantization.prepared", False, True, True, "")
