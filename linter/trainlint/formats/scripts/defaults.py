"""What a training script does where it is silent: the defaults of the trainer it calls, or of its own loop.

Whatever only a run decides (a keyword computed at run time, an adapter under an `if`) gets no default.
"""

from __future__ import annotations

from trainlint.documents import Scalar
from trainlint.formats.format import Draft
from trainlint.formats.fragment import Fragment
from trainlint.formats.scripts import unsloth
from trainlint.formats.scripts.amp import Amp
from trainlint.formats.scripts.setup import Setup
from trainlint.formats.semantics import peft
from trainlint.formats.semantics import trainer_arguments as arguments
from trainlint.formats.semantics import trainer_precision as precision
from trainlint.formats.semantics import trl as trl_defaults

MODES = ("precision.bf16", "precision.fp16")


def complete(draft: Draft) -> None:
    """Defaults by who trains; paths that are unknown for good stay so."""
    fragment = draft.fragments[0]
    made = fragment.facts.get("setup")
    if not isinstance(made, Setup):
        return
    trainer = str(fragment.facts["trainer"])
    prepare(draft, fragment, trainer)
    if trainer in ("transformers", "trl") and made.config is not None and not made.config.open:
        if trainer == "trl" and fragment.section != "TrainingArguments":
            trl_defaults.complete(draft, fragment)
        elif trainer == "trl":
            draft.derive("framework", "trl", "the trainer")
        arguments.complete(draft, fragment)
    else:
        _loop(draft, fragment, made, trainer)
    if not draft.values.get("precision.weights") and not draft.possible.get("precision.weights"):
        draft.possible.pop("precision.compute", None)
    for path in [path for path, options in draft.possible.items() if not options]:
        del draft.possible[path]


def prepare(draft: Draft, fragment: Fragment, trainer: str) -> None:
    """What a script decides before the trainer's defaults: also for a command line that starts the script."""
    made = fragment.facts.get("setup")
    if isinstance(made, Setup):
        _block(draft, fragment, made)
        _model(draft, made, trainer)


def _block(draft: Draft, fragment: Fragment, made: Setup) -> None:
    """Keep defaults from what only a run decides; of the two modes both values stay possible."""
    unknown = fragment.facts.get("unknown")
    for path in unknown if isinstance(unknown, frozenset) else ():
        if draft.has(path):
            continue
        if path in MODES:
            draft.either(path, (True, f"`{path[10:]}` is on"), (False, f"`{path[10:]}` is off"), origin="derived")
        else:
            draft.possible[path] = ()
    if not made.loads and not draft.has("precision.weights") and not draft.has("model.id"):
        draft.possible["precision.weights"] = ()  # a model that is built elsewhere
    if made.adapter is False and (made.frozen or not (made.loads or draft.has("model.id"))) and not draft.has("method"):
        draft.possible["method"] = ()


def _model(draft: Draft, made: Setup, trainer: str) -> None:
    """Method, adapter, quantization and dtype as the script itself sets them up."""
    fast = unsloth.loads(draft, made)
    if fast:
        unsloth.defaults(draft, made)
    bits = draft.get("quantization.bits")
    if made.adapter and draft.possible.get("quantization.bits") == ():
        draft.either("method", ("lora", "without quantization"), ("qlora", "with it"), origin="derived")
    elif made.adapter:
        draft.derive("method", "qlora" if bits is not None else "lora", "an adapter is trained")
    elif made.adapter is None and not any(path.startswith("adapter.") for path in draft.values):
        draft.either("method", ("full", "without the adapter"), ("lora", "with it"), origin="derived")
    elif trainer and made.adapter is False:
        draft.derive("method", "full", "no adapter is made")
    peft.quantization_defaults(draft, "nf4" if fast else "fp4", fast, "unsloth" if fast else "transformers")
    if bits is not None and trainer == "transformers" and made.prepared is not None:
        draft.derive("quantization.prepared", made.prepared, "the script's calls")
    if made.loads:
        written = made.loads[0].keywords.get("dtype") or made.loads[0].keywords.get("torch_dtype")
        precision.load_dtype(draft, written.value if isinstance(written, Scalar) else None)
    if made.adapter:
        peft.adapter_defaults(draft)


def _loop(draft: Draft, fragment: Fragment, made: Setup, trainer: str) -> None:
    """A loop of the script's own: what its calls say, torch's defaults for the optimizer, no trainer's."""
    if trainer:
        draft.derive("framework", trainer, "the script")
    amp = fragment.facts.get("amp")
    if not isinstance(amp, Amp) or trainer in ("", "lightning", "transformers", "trl"):
        return
    if made.loads:
        precision.attention(draft)
        draft.default("checkpointing.kind", "none", "transformers")
        precision.reentrant(draft)
    if trainer == "accelerate":
        precision.mixed_precision(draft) if draft.has("precision.mixed") else None
        return
    entered = [event for event in amp.of("autocast") if not event.conditional]
    if not amp.of("autocast"):
        draft.derive("precision.autocast", False, "no autocast in the script")
        if draft.get("precision.weights") is not None:
            draft.derive("precision.compute", draft.get("precision.weights"), "no autocast in the script")
    elif entered and all(event.enabled and event.dtype == entered[0].dtype for event in amp.of("autocast")):
        draft.derive("precision.autocast", True, "autocast")
        if entered[0].dtype in ("float16", "bfloat16"):
            draft.derive("precision.compute", entered[0].dtype, "autocast")
    scalers = amp.of("scaler")
    if not scalers or all(event.enabled for event in scalers if not event.conditional):
        draft.derive("precision.grad_scaler", bool(scalers), "GradScaler")
