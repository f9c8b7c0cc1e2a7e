"""A data set that is streamed has no length, and nothing says how many steps to train."""

from collections.abc import Iterator

from trainlint.api import Entry, Found, RunView, Scalar, Sequence, Value, calls_of, rule, said, setup_of

FORMATS = ("hf-trainer", "trl", "llamafactory", "axolotl", "shell-launcher", "python-script")


@rule(severity="error", formats=FORMATS)
def check(view: RunView) -> Iterator[Found]:
    run, root = view.run, view.root
    unknown = root.facts.get("unknown")
    undecided = isinstance(unknown, frozenset) and "schedule.max_steps" in unknown
    if run.schedule.max_steps is not None or undecided or root.facts.get("open") or root.facts.get("own_loop"):
        return
    spot = _streamed(view)
    if spot is not None:
        quoted = "streaming=True" if root.format == "python-script" and isinstance(spot, Entry) else said(spot)
        yield Found(
            at=spot,
            message=f"`{quoted}` has no length, and `max_steps` is not set: the trainer refuses to start",
            help="set `max_steps`",
        )


def _streamed(view: RunView) -> Value[object] | Value[bool] | Entry | None:
    """What says that the training data are streamed."""
    if view.root.format == "python-script":
        return _loaded(view)
    streaming = view.run.data.streaming
    if streaming is not None and streaming.value and streaming.written:
        return streaming
    if view.root.format == "axolotl":
        entry = view.root.entry("pretraining_dataset")
        empty = entry is None or (isinstance(entry.value, Scalar) and not entry.value.value)
        return None if empty or (entry and isinstance(entry.value, Sequence) and not entry.value.items) else entry
    return None


def _loaded(view: RunView) -> Entry | None:
    """The `streaming=True` of the data set that a script's trainer gets, with all its arguments in sight."""
    made = setup_of(view.root)
    if made is None or made.trainer is None or made.config is None or made.config.open:
        return None
    source = made.trainer.sources.get("train_dataset", "")
    for call in calls_of(view.root, "load_dataset"):
        entry = call.keywords.entry("streaming")
        named = call.target and source.partition("[")[0].partition(".")[0] == call.target
        if named and entry is not None and not call.conditional and getattr(entry.value, "value", None) is True:
            return entry
    return None
