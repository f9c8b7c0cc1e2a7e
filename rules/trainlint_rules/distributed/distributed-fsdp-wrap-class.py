"""FSDP is to wrap modules of a class that the model does not have."""

from collections.abc import Iterator

from trainlint.api import Edit, Fix, Found, RunView, layers, rule


@rule(severity="error", needs=("sharding.wrap_classes", "model.type"))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    classes, kind = run.sharding.wrap_classes, run.model.type
    own = layers.find(kind.value) if kind is not None else None
    if classes is None or kind is None or own is None or not _shards(view):
        return
    if run.sharding.wrap is not None and run.sharding.wrap.value in ("none", "size"):
        return
    for name in classes.value:
        meant = next((layer for layer in own if layer.lower() == name.lower()), None)
        if name in own or (meant is None and layers.owner(name) is None):
            continue
        right = meant or ",".join(own)
        yield Found(
            at=classes,
            message=f"`{name}` is no class of {kind.value} models, whose layers are {' and '.join(own)}: FSDP stops "
            "at the start",
            help=f"write `{right}`, or leave `{classes.key.rpartition('.')[2].lstrip('-')}` out",
            notes=[(run.model.id, "the model")],
            fix=_renamed(view, name, right),
        )


def _shards(view: RunView) -> bool:
    """Whether FSDP runs, in whichever version."""
    kind = view.run.sharding.kind
    kinds = {value.value for value in view.run.possible.get("sharding.kind", ())} if kind is None else {kind.value}
    return bool(kinds) and kinds <= {"fsdp", "fsdp2"}


def _renamed(view: RunView, name: str, right: str) -> Fix | None:
    """The other name written in its place, where that is one word of one line."""
    classes = view.run.sharding.wrap_classes
    place = classes.place if classes is not None else None
    if place is None or place.line != place.end_line:
        return None
    fragment = next((one for one in view.fragments if one.file == place.file), None)
    text = fragment.document.line(place.line) if fragment is not None else ""
    start = text.find(name, place.column - 1)
    if start < 0 or text.count(name, place.column - 1, place.end_column) != 1:
        return None
    where = place._replace(column=start + 1, end_column=start + 1 + len(name))
    return Fix((Edit(where, right),), "safe", f"write `{right}`")
