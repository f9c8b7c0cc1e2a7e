"""A metric over a language model's logits, which evaluation then keeps on the device, those of all samples."""

from collections.abc import Iterator, Sequence

from trainlint.api import Found, RunView, gib, known, rule

TRAINERS = ("Trainer", "SFTTrainer")
MODELS = ("AutoModelForCausalLM", "FastLanguageModel", "LlamaForCausalLM", "GPT2LMHeadModel", "Qwen2ForCausalLM")
"""Models whose logits are as wide as the vocabulary, where nothing else tells."""
SAMPLES = 100


@rule(severity="warning", needs=("framework",), formats=("python-script",))
def check(view: RunView) -> Iterator[Found]:
    run, calls = view.run, view.root.facts.get("calls")
    if not isinstance(calls, Sequence) or not _wide(view, calls):
        return
    if run.evaluation.accumulation is not None or "prediction_loss_only" in view.root.document.text:
        return
    length, vocabulary = run.length.max, run.model.shape.vocab
    for call in calls:
        measured = call.sources.get("compute_metrics", "None") != "None"
        if call.short not in TRAINERS or not measured or "preprocess_logits_for_metrics" in call.sources or call.open:
            continue
        if "eval_accumulation_steps" in view.root.document.text or "eval_dataset" not in call.sources:
            continue
        size = ""
        if length is not None and vocabulary is not None:
            each = 4 * length.value * vocabulary.value
            size = f": {SAMPLES} x {length.value} tokens over {vocabulary.value} words are {gib(SAMPLES * each)}"
        yield Found(
            at=call.place,
            message=f"`compute_metrics` takes the logits of all evaluation samples, which are gathered on the device "
            f"in float32{size}",
            help="pass `preprocess_logits_for_metrics` that keeps the argmax; `eval_accumulation_steps` only moves "
            "them to the machine's RAM",
            notes=[(run.model.id, "the model")],
        )


def _wide(view: RunView, calls: Sequence[object]) -> bool:
    """Whether the model predicts words: a class says so, and nothing else is loaded."""
    if (known(view.run.model.head) or "causal-lm") != "causal-lm":
        return False
    names = {name for call in calls for name in str(getattr(call, "name", "")).split(".")}
    return not names.isdisjoint(MODELS)
