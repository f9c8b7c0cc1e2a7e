"""A job of several tasks whose command runs once."""

from collections.abc import Iterator

from trainlint.api import FileView, Found, rule, started

SPREADS = (
    "srun",
    "mpirun",
    "mpiexec",
    "ssh",
    "pdsh",
    "parallel",
    "jsrun",
    "ibrun",
    "ray",
    "clush",
    "orterun",
    "sbatch",
)
"""Commands that start others on further machines or in further tasks."""


@rule(severity="error", on="file")
def check(view: FileView) -> Iterator[Found]:
    found, starts = started.directives(view.fragment), started.trainings(view.fragment)
    if not found or not starts:
        return
    names = {word.text for command in started.commands(view.fragment) for word in command.words}
    if any((name or "").rpartition("/")[2] in SPREADS for name in names) or _hidden(view):
        return
    nodes = found.get("nodes")
    tasks = found.get("ntasks-per-node") or found.get("ntasks")
    for start in starts:
        if start.wrapper in SPREADS or start.launcher == "deepspeed" or start.command.conditional:
            continue
        if nodes is not None and nodes.text.isdecimal() and int(nodes.text) > 1:
            yield Found(
                at=start.word.place,
                message=f"`{start.word.text}` runs on the first of {nodes.text} nodes alone: nothing "
                f"starts it on the others",
                help=f"put `srun` before `{start.word.text or 'it'}`",
                notes=[(nodes.place, "the nodes")],
            )
        elif start.launcher == "python" and tasks is not None and tasks.text.isdecimal() and int(tasks.text) > 1:
            yield Found(
                at=start.word.place,
                message=f"`{start.word.text}` runs once, the job has {tasks.text} tasks: "
                "without `srun` the others stay empty",
                help=f"put `srun` before `{start.word.text or 'it'}`, or ask for one task",
                notes=[(tasks.place, "the tasks")],
                severity="warning",
            )


def _hidden(view: FileView) -> bool:
    """Whether a command comes out of a variable that is not known."""
    return any(command.words and command.words[0].text is None for command in started.commands(view.fragment))
