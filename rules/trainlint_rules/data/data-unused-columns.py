"""A script reads a column that the Trainer takes out before the script sees it."""

import ast
from collections.abc import Iterator

from trainlint.api import Found, Place, RunView, rule, setup_of, since

KEPT = frozenset(
    (
        "input_ids", "attention_mask", "token_type_ids", "position_ids", "labels", "label", "label_ids",
        "inputs_embeds", "head_mask", "decoder_input_ids", "decoder_attention_mask", "pixel_values",
        "pixel_mask", "input_values", "input_features", "image_grid_thw", "image_sizes", "bbox",
        "start_positions", "end_positions", "past_key_values", "use_cache", "cache_position",
        "pixel_values_videos", "video_grid_thw", "input_boxes", "mask_labels", "class_labels",
        "global_attention_mask", "langs", "cross_attention_mask", "aspect_ratio_ids", "num_logits_to_keep",
    )
)  # fmt: skip
"""Arguments of the forward passes of models in transformers, and the labels."""


@rule(severity="warning", formats=("python-script",))
def check(view: RunView) -> Iterator[Found]:
    made, module = setup_of(view.root), view.root.document.module
    if made is None or made.trainer is None or made.config is None or module is None or not made.loads:
        return
    trainer, config = made.trainer, made.config
    origin = view.root.facts.get("trainer")
    kept = config.open or "remove_unused_columns" in config.sources or trainer.open
    if origin != "transformers" or kept or "def forward" in view.root.document.text:
        return
    untyped = [call for call in made.adapters if "task_type" not in call.sources and not call.open and not call.first]
    if made.adapter and untyped and since(view.run.versions, "transformers", "4.37") is False:
        yield Found(
            at=untyped[0].place,
            message=f"`{untyped[0].short}` has no `task_type`: before transformers 4.37 the Trainer sees none of the "
            "model's arguments then, and drops every column",
            help='set `task_type="CAUSAL_LM"` (or what the model is), or `remove_unused_columns=False`',
            notes=[(view.run.versions.get("transformers"), "the release"), (trainer.place, "the trainer")],
        )
        return
    collate = trainer.sources.get("data_collator", "")
    for node in ast.walk(module):
        named = isinstance(node, ast.FunctionDef) and node.name == collate
        loss = isinstance(node, ast.FunctionDef) and node.name == "compute_loss"
        if not isinstance(node, ast.FunctionDef) or not (named or (loss and not collate)):
            continue
        for name, place in _columns(node, view.root.file, loss):
            if name not in KEPT:
                yield Found(
                    at=place,
                    message=f"column `{name}` is not there: the Trainer keeps those that the model's forward takes",
                    help="set `remove_unused_columns=False`",
                    notes=[(config.place, "the arguments"), (trainer.place, "the trainer")],
                )
                return


def _columns(function: ast.FunctionDef, file: str, loss: bool) -> Iterator[tuple[str, Place]]:
    """Names by which a function reads its samples: `row["text"]` for each row of its argument, `inputs["text"]`."""
    arguments = [one.arg for one in function.args.args if one.arg != "self"]
    if not arguments or (loss and len(arguments) < 2):
        return
    read = {arguments[1]} if loss else set()
    for node in ast.walk(function):
        match node:
            case ast.comprehension(target=ast.Name(id=row), iter=ast.Name(id=whole)) if not loss and whole in arguments:
                read.add(row)
            case ast.For(target=ast.Name(id=row), iter=ast.Name(id=whole)) if not loss and whole in arguments:
                read.add(row)
    for node in ast.walk(function):
        match node:
            case ast.Subscript(value=ast.Name(id=row), slice=ast.Constant(value=str() as name), ctx=ast.Load()):
                if row in read:
                    end = node.end_col_offset or node.col_offset
                    yield name, Place(file, node.lineno, node.col_offset + 1, node.end_lineno or node.lineno, end + 1)
