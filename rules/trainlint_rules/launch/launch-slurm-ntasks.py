"""Lightning under Slurm: tasks of the job and devices of the Trainer do not agree."""

from collections.abc import Iterator

from trainlint.api import Edit, Fix, Found, RunView, rule, said, started


@rule(severity="error")
def check(view: RunView) -> Iterator[Found]:
    trainer = view.fragment("lightning", "python-script")
    if trainer is None or (trainer.format == "python-script" and trainer.facts.get("trainer") != "lightning"):
        return
    devices = trainer.values.get("parallel.per_node")
    for fragment in view.fragments:
        found, starts = started.directives(fragment), started.trainings(fragment)
        if not found or not starts or any(start.launcher != "python" for start in starts):
            continue
        each, tasks = found.get("ntasks-per-node"), found.get("ntasks")
        nodes = found["nodes"].text if "nodes" in found else "1"
        if each is not None and each.text.isdecimal() and devices is not None and int(each.text) != devices.value:
            yield Found(
                at=each.place,
                message=f"`--ntasks-per-node={each.text}` makes {each.text} of the processes on a node, "
                f"the Trainer has `{said(devices)}`: Lightning stops",
                help=f"write `--ntasks-per-node={devices.value}`, and start it with `srun`",
                notes=[(devices, "the Trainer's devices")],
                fix=Fix((Edit(each.place, str(devices.value)),), "unsafe"),
            )
        elif each is not None and tasks is not None and _fewer(tasks.text, each.text, nodes):
            yield Found(
                at=tasks.place,
                message=f"`--ntasks={tasks.text}` starts fewer processes than `--ntasks-per-node={each.text}`, which "
                f"Lightning counts on: it trains on {tasks.text} of them or waits for the rest",
                help=f"take `--ntasks` out, or write `--ntasks={int(each.text) * int(nodes)}`",
                notes=[(each.place, "processes of a node")],
            )
        elif each is None and tasks is not None and tasks.text.isdecimal() and int(tasks.text) > 1:
            yield Found(
                at=tasks.place,
                message=f"`--ntasks={tasks.text}`: Lightning reads `--ntasks-per-node` alone, and stops",
                help=f"write `--ntasks-per-node={devices.value if devices else tasks.text}` and `--nodes={nodes}`",
                notes=[(devices, "the Trainer's devices")],
            )


def _fewer(tasks: str, each: str, nodes: str) -> bool:
    """Whether a job has fewer tasks than its nodes have places for."""
    return all(text.isdecimal() for text in (tasks, each, nodes)) and int(tasks) < int(each) * int(nodes)
