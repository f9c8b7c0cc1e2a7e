"""Padding on the side where generation goes on, or where half precision overflows."""

from collections.abc import Iterator

from trainlint.api import Found, Place, RunView, assignments_of, calls_of, rule, setup_of, since

GENERATES = ("PPOTrainer", "RLOOTrainer", "OnlineDPOTrainer")
"""Trainers that pad the prompts with the tokenizer as it is, and then generate."""


@rule(severity="info", formats=("python-script",))
def check(view: RunView) -> Iterator[Found]:
    made = setup_of(view.root)
    trainer = made.trainer if made is not None else None
    if trainer is None:
        return
    sides = list(_sides(view))
    if not sides or len({side for side, _ in sides}) > 1:
        return
    side, place = sides[0]
    half = view.run.precision.fp16
    if side == "right" and trainer.short in GENERATES:
        yield Found(
            at=place,
            message=f"`padding_side` is right and `{trainer.short}` generates from padded prompts: "
            "the answer begins behind the padding",
            help='set `padding_side="left"`',
            notes=[(trainer.place, "generates")],
        )
        return
    old = since(view.run.versions, "trl", "0.13") is False
    if side == "left" and trainer.short == "SFTTrainer" and half is not None and half.value and old:
        yield Found(
            at=place,
            message="`padding_side` is left under fp16: this TRL warns of overflow in training",
            help='set `padding_side="right"` for training',
            notes=[(half, "half precision")],
        )


def _sides(view: RunView) -> Iterator[tuple[str, Place]]:
    for one in assignments_of(view.root):
        value = getattr(one.value, "value", None)
        if one.target.endswith(".padding_side") and isinstance(value, str):
            yield value, one.place
    for call in calls_of(view.root, "from_pretrained"):
        node = call.keywords.get("padding_side")
        value = getattr(node, "value", None)
        if node is not None and isinstance(value, str):
            yield value, node.place
