"""Evaluation is asked for and there are no data to evaluate on."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, rule, said, setup_of

PLAIN = frozenset(
    (
        "Trainer", "Seq2SeqTrainer", "SFTTrainer", "DPOTrainer", "KTOTrainer", "ORPOTrainer", "CPOTrainer",
        "RewardTrainer", "GRPOTrainer", "BCOTrainer", "PRMTrainer", "RLOOTrainer",
    )
)  # fmt: skip
"""Trainers whose fifth argument, if no name is given, is `eval_dataset` or comes later."""


@rule(severity="error", formats=("llamafactory", "axolotl", "python-script", "shell-launcher"))
def check(view: RunView) -> Iterator[Found]:
    run, when = view.run, view.run.evaluation.strategy
    form = view.root.framework if view.root.format == "shell-launcher" else view.root.format
    asked = when if when is not None and when.written and when.value != "no" else None
    held = run.data.validation
    none = held is None or held.value == 0
    match form:
        case "llamafactory" if asked is not None and none and not view.root.written("eval_dataset"):
            if view.root.facts.get("open") or "train_dataset" in view.root.keys:
                return
            yield Found(
                at=asked,
                message=f"`{said(asked)}`, and there is neither `val_size` nor `eval_dataset`: it can not be done",
                help='set `val_size: 0.05` or `eval_dataset`, or `eval_strategy: "no"`',
                notes=[(held, "nothing is held back")],
            )
        case "axolotl":
            every = run.evaluation.every
            spot = asked or (
                every if every is not None and every.written and (when is None or not when.written) else None
            )
            if spot is None or held is None or held.value != 0 or view.root.entry("test_datasets") is not None:
                return
            yield Found(
                at=spot,
                message=f"`{said(spot)}`, and `{said(held)}` holds no samples back: Axolotl refuses the two",
                help=f"set `{held.key}: 0.05` or `test_datasets`, or take `{spot.key}` out",
                notes=[(held, "nothing is held back")],
            )
        case "python-script" if asked is not None:
            yield from _script(view)


def _script(view: RunView) -> Iterator[Found]:
    made, when = setup_of(view.root), view.run.evaluation.strategy
    trainer = made.trainer if made is not None else None
    if made is None or trainer is None or when is None or made.config is None or made.config.conditional:
        return
    given = "eval_dataset" in trainer.sources and trainer.sources["eval_dataset"] != "None"
    if given or trainer.open or trainer.short not in PLAIN or len(trainer.positional) > 3:
        return
    if any(line.strip().startswith(("def get_eval_dataloader", "trainer.eval_dataset")) for line in _lines(view)):
        return
    yield Found(
        at=when,
        message=f"`{said(when)}`, and `{trainer.short}` gets no `eval_dataset`: it stops at the first evaluation",
        help="pass `eval_dataset`, or leave the evaluation out",
        notes=[(trainer.place, "the trainer")],
    )


def _lines(view: RunView) -> list[str]:
    return view.root.document.text.splitlines()
