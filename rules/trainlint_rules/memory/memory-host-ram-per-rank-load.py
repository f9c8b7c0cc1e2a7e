"""Every process loads the whole model into the machine's RAM, because loading once is switched off."""

from collections.abc import Iterator

from trainlint.api import Entry, Found, RunView, Scalar, gib, known, rule, said

SWITCHES = {
    "fsdp_config.fsdp_cpu_ram_efficient_loading": ("fsdp", "fsdp2"),
    "fsdp_cpu_ram_efficient_loading": ("fsdp", "fsdp2"),
    "fsdp_config.cpu_ram_efficient_loading": ("fsdp", "fsdp2"),
    "deepspeed_config.zero3_init_flag": ("zero3",),
}
"""Switches of loading once, and the engines that have them."""
WIDTH = {"float32": 4, "bfloat16": 2, "float16": 2}


@rule(severity="warning", needs=("sharding.kind", "model.parameters"))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    host = run.launch.memory or run.device.host_memory
    processes = known(run.parallel.per_node) or known(run.device.count) or known(run.parallel.world)
    count, at = known(run.model.parameters), _switched_off(view)
    if host is None or not processes or processes < 2 or count is None or at is None:
        return
    width = WIDTH.get(known(run.model.dtype) or "", 2)
    each = count * width
    if processes * each <= host.value:
        return
    yield Found(
        at=at,
        message=f"`{said(at)}`: {processes} processes load {gib(each)} each, {gib(processes * each)} together, and the "
        f"machine has {gib(host.value)}",
        help=f"set `{at.name}: true`: one process loads, the others get their shards",
        notes=[(host, "the RAM"), (run.model.id, "the model")],
    )


def _switched_off(view: RunView) -> Entry | None:
    kind = known(view.run.sharding.kind)
    for fragment in view.fragments:
        for key, engines in SWITCHES.items():
            entry = fragment.entry(key)
            off = entry is not None and isinstance(entry.value, Scalar) and str(entry.value.value).lower() == "false"
            if off and kind in engines:
                return entry
    return None
