"""A learning rate for full fine-tuning on an adapter, which then hardly moves."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, rule, written

USUAL, SURE, PREFERENCE = 2e-5, 1e-5, 5e-7
"""Below these LoRA shows little effect: supervised training (a few recipes do with 1e-5), preference and reward."""
SUPERVISED = ("sft", "pretrain")
OTHER_SCALES = ("prodigy", "dadapt", "lion", "sgd", "adafactor", "muon", "schedule_free", "lomo", "came")
"""Optimizers whose rate means something else than Adam's."""
RATIOS = ("loraplus_lr_ratio", "lora_plus_lr_ratio", "loraplus_lr_embedding")

PREFERENCES = ("beta", "max_prompt_length", "max_completion_length", "num_generations", "loss_type", "rpo_alpha")
"""Keys by which a config of TRL without a named method shows that it is no supervised training."""


@rule(
    severity="warning",
    needs=("method", "optimizer.lr"),
    formats=("hf-trainer", "trl", "axolotl", "llamafactory", "ms-swift", "python-script", "shell-launcher"),
)
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    rate, method, name, objective = run.optimizer.lr, run.method, run.optimizer.name, run.objective
    if rate is None or rate.place is None or method is None or method.value not in ("lora", "qlora"):
        return
    if name is not None and any(word in name.value for word in OTHER_SCALES):
        return
    if any(view.root.entry(key) is not None for key in RATIOS) or run.evaluation.only:
        return
    if run.kernels and run.kernels.value == "unsloth" and objective is None:
        return
    supervised = objective is not None and objective.value in SUPERVISED
    told = objective is not None or any(view.root.entry(key) is not None for key in PREFERENCES)
    limit = PREFERENCE if told and not supervised else USUAL
    if not 0 < rate.value < limit:
        return
    certain = rate.value < SURE and (supervised or (run.framework is not None and run.framework.value == "diffusers"))
    yield Found(
        at=rate,
        message=f"`{rate.key}: {rate.raw or written(rate.value)}` is a rate for full fine-tuning: "
        "an adapter starts at zero and needs some ten times as much",
        help="try 1e-4 to 2e-4" if limit == USUAL else "try 1e-6 to 1e-5",
        notes=[(method, "an adapter is trained")],
        severity="warning" if certain or limit == PREFERENCE else "info",
    )
