"""DDP looks for unused parameters, and re-entrant checkpointing hides those that are used."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, known, rule, said

PLAIN = ("hf-trainer", "trl", "python-script", "shell-launcher")
"""Formats whose Trainer switches the search on for adapters; LLaMA-Factory and Axolotl switch it off."""


@rule(severity="error", needs=("checkpointing.kind", "checkpointing.reentrant"))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    kind, search, world = run.checkpointing.kind, run.sharding.find_unused, run.parallel.world
    if kind is None or kind.value != "full" or not known(run.checkpointing.reentrant):
        return
    if (world is not None and world.value < 2) or known(run.sharding.kind) not in (None, "none"):
        return
    if search is not None and search.value and search.written:
        yield Found(
            at=search,
            message=f"`{said(search)}` with re-entrant checkpointing: DDP takes recomputed parameters for unused ones "
            "and stops at the second gradient of one",
            help=f"set `{search.key}` to false, or `use_reentrant` to false",
            notes=[(kind, "layers are recomputed")],
        )
        return
    adapter = str(known(run.method)) in ("lora", "qlora") and run.parallel.world is not None
    started = view.root.format in PLAIN or view.root.starts
    if search is None and adapter and started and kind.written and str(known(run.framework)) in ("transformers", "trl"):
        yield Found(
            at=kind,
            message=f"`{said(kind)}` is re-entrant, and for adapters the Trainer lets DDP look for unused parameters: "
            "it stops at the second gradient of one",
            help="set `use_reentrant` to false in `gradient_checkpointing_kwargs`, or `ddp_find_unused_parameters` to "
            "false",
            notes=[(world, "several processes")],
            severity="warning",
        )
