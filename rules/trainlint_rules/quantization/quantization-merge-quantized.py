"""An adapter merged into a quantized base."""

from collections.abc import Iterator

from trainlint.api import Found, Fragment, RunView, rule

BITS = ("quantization_config", "load_in_4bit", "load_in_8bit")
DEPTH = 4
"""How many assignments a model's name is followed back."""


@rule(severity="error", formats=("llamafactory", "python-script"))
def check(view: RunView) -> Iterator[Found]:
    if view.root.format == "llamafactory":
        yield from _exported(view)
    else:
        yield from _merged(view.root)


def _exported(view: RunView) -> Iterator[Found]:
    """LLaMA-Factory's export of a base with an adapter."""
    root = view.root
    target, adapter = root.value("export_dir"), root.value("adapter_name_or_path")
    if target is None or adapter is None or not target.value or not adapter.value:
        return
    bits, after = root.value("quantization_bit"), root.value("export_quantization_bit")
    stored = view.run.model.quantized
    if after is not None and after.value:
        yield Found(
            at=after,
            message=f"`{after.key}: {after.raw}` beside an adapter: "
            "`Please merge adapters before quantizing the model`",
            help=f"export once without `{after.key}`, then quantize the merged model in a second export",
            notes=[(adapter, "the adapter")],
        )
    elif (bits is not None and bits.value) or (stored is not None and view.run.model.id is not None):
        spot = bits if bits is not None and bits.value else view.run.model.id
        assert spot is not None
        yield Found(
            at=spot,
            message=f"`{spot.key}: {spot.raw}` is a quantized base: `Cannot merge adapters to a quantized model`",
            help="export from the 16-bit base",
            notes=[(adapter, "the adapter"), (target, "what is exported")],
        )


def _merged(script: Fragment) -> Iterator[Found]:
    """`merge_and_unload` on a model that was loaded in 4 or 8 bits, before it is saved."""
    calls = script.facts.get("calls")
    if not isinstance(calls, tuple):
        return
    for merge in calls:
        if merge.short != "merge_and_unload" or merge.conditional:
            continue
        name, before = merge.receiver, merge.place
        for _ in range(DEPTH):
            bound = [call for call in calls if call.target == name and call.place < before]
            if not bound or any(call.conditional for call in bound):
                break
            last = bound[-1]
            loaded = next((entry for entry in last.keywords.entries if entry.name in BITS), None)
            if loaded is not None or BITS[0] in last.sources:
                if last.sources.get(BITS[0], "") != "None":
                    yield Found(
                        at=merge.place,
                        message=f"merges into weights that `{last.short}` loaded quantized: the sum is rounded to "
                        "their few bits again",
                        help="load the base in 16 bits, put the adapter on it, and merge there",
                        notes=[(loaded or last.place, "loaded quantized here")],
                        severity="warning",
                    )
                break
            name, before = last.first, last.place
