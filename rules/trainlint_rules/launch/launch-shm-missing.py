"""A container that trains with several processes has the default 64 MiB of shared memory."""

import re
from collections.abc import Iterator

from trainlint.api import Found, RunView, known, rule, started

ENGINES = ("docker", "podman")
SHARED = ("--shm-size", "--ipc")
ALL = re.compile(r"\$(\w+|\{\w+\}|\{\w+\[@\]\})")
"""A word that is a variable, and may be any options."""


@rule(severity="warning")
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    shm, gpus, workers = run.launch.shm, known(run.launch.gpus, 0), known(run.data.workers) or _workers(view)
    many = bool(workers) or (gpus or 0) > 1
    why = f"{workers} loader processes" if workers else f"{gpus} devices"
    if shm is not None and not shm.value and gpus and many:
        yield Found(
            at=shm,
            message=f"64 MiB of shared memory for {why}: {_outcome(bool(workers))}",
            help="add `ipc: host` or `shm_size: 16gb`"
            if shm.file_format == "docker-compose"
            else "mount an `emptyDir` with `medium: Memory` at `/dev/shm`",
            notes=[(run.launch.gpus, "the devices")],
            severity="warning" if workers or gpus > 2 else "info",
        )
    for fragment in view.fragments:
        for start in started.trainings(fragment):
            words = [word.text or word.raw for word in start.command.words]
            if start.wrapper not in ENGINES or "run" not in words:
                continue
            given = any(word.startswith(SHARED) or "/dev/shm" in word or ALL.fullmatch(word) for word in words)
            if given or not any(word.startswith("--gpus") for word in words):
                continue
            several = start.launcher in ("torchrun", "accelerate", "deepspeed") and known(run.parallel.world) != 1
            if several or workers:
                yield Found(
                    at=start.command.words[0].place,
                    message=f"the container has 64 MiB of shared memory: {_outcome(bool(workers))}",
                    help="add `--ipc=host` or `--shm-size=16g`",
                )


def _workers(view: RunView) -> int:
    """The loader processes that a program is told to start."""
    for fragment in view.fragments:
        for start in started.trainings(fragment):
            for name in ("dataloader_num_workers", "num_workers", "workers", "num_dataloader_workers"):
                option = start.arguments.get(name)
                text = (option.values[0].text or "") if option is not None and option.values else ""
                if text.isdecimal():
                    return int(text)
    return 0


def _outcome(workers: bool) -> str:
    return (
        "a loader's batch is larger, and it ends with a bus error"
        if workers
        else "NCCL between them and loaders with processes of their own fail or end with a bus error"
    )
