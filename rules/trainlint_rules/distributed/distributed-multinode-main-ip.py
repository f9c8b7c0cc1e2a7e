"""Several machines are to find each other at an address that every one of them takes for itself, or at none."""

from collections.abc import Iterator

from trainlint.api import Found, Fragment, RunView, rule, said, started

LOOPBACK = ("127.0.0.1", "localhost", "0.0.0.0", "::1")
IP = "main_process_ip"
WHERE = ("master_addr", "rdzv_endpoint", "rdzv_conf", "rdzv_backend")
"""torchrun's options that name a meeting place; without one of them it is this machine."""


@rule(severity="error")
def check(view: RunView) -> Iterator[Found]:
    for fragment in view.fragments:
        if fragment.format == "accelerate":
            yield from _config(fragment, view)
        elif fragment.format == "shell-launcher":
            yield from _commands(fragment)


def _config(fragment: Fragment, view: RunView) -> Iterator[Found]:
    machines, ip = fragment.written("num_machines"), fragment.entry(IP)
    launcher = fragment.written("deepspeed_config.deepspeed_multinode_launcher")
    if not isinstance(machines, int) or machines < 2 or launcher not in (None, "standard"):
        return
    if fragment.entry("mpirun_config") is not None:
        return
    starts = [start for one in view.fragments for start in started.trainings(one) if start.launcher == "accelerate"]
    if any(IP in start.options or "machine_rank" in start.options for start in starts):
        return
    address = fragment.written(IP)
    if ip is not None and address in LOOPBACK:
        yield Found(
            at=ip,
            message=f"`{said(ip)}` is each machine itself: {machines} machines wait for each other",
            help=f"set `{IP}` to the address of the machine of rank 0",
            notes=[(fragment.entry("num_machines"), "several machines")],
        )
    elif address is None and (starts or ip is not None):
        at = ip or fragment.entry("num_machines")
        assert at is not None
        lacks = "neither this file nor the command says" if starts else "this file does not say"
        yield Found(
            at=at,
            message=f"{machines} machines, and {lacks} where rank 0 is",
            help=f"set `{IP}` and `main_process_port`" + ("" if starts else ", here or on the command line"),
            notes=[(starts[0].word.place if starts else None, "the command")],
            severity="error" if starts else "info",
        )


def _commands(fragment: Fragment) -> Iterator[Found]:
    for start in started.trainings(fragment):
        option = start.options.get({"torchrun": "nnodes", "accelerate": "num_machines"}.get(start.launcher, ""))
        if option is None or not option.values or start.command.open:
            continue
        count = option.values[0].text or ""
        if not count.isdecimal() or int(count) < 2:
            continue
        name = "master_addr" if start.launcher == "torchrun" else IP
        given = start.options.get(name)
        address = given.values[0].text if given is not None and given.values else ""
        if given is not None and address in LOOPBACK:
            yield Found(
                at=given.values[0].place,
                message=f"`{given.key} {address}` is each machine itself: {count} machines wait for each other",
                help=f"give `{given.key}` the address of the machine of rank 0",
                notes=[(option.values[0].place, "several machines")],
            )
        elif start.launcher == "torchrun" and not any(word in start.options for word in WHERE):
            rank = start.options.get("node_rank")
            head = rank is not None and bool(rank.values) and rank.values[0].text == "0"
            yield Found(
                at=option.values[0].place,
                message=f"`{option.key} {count}` without a meeting place: each machine takes 127.0.0.1 for rank 0",
                help="add `--rdzv_backend c10d --rdzv_endpoint HOST:29500`, or `--master_addr`",
                severity="warning" if head else "error",  # the others may know where this one is
            )
