"""Finds runs that save their checkpoints outside of `runs/`, where nobody backs them up."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, rule

FOLDER = "runs/"


@rule(severity="warning", needs=("checkpoint.output",))
def check(view: RunView) -> Iterator[Found]:
    """Only what somebody wrote is judged: a framework's default has no place in a file."""
    output = view.run.checkpoint.output
    if output is None or not output.written or output.value.removeprefix("./").startswith(FOLDER):
        return
    name = output.value.rstrip("/").rpartition("/")[2]
    yield Found(
        at=output,
        message=f"`{output.key}: {output.value}` lies outside of `{FOLDER}`, which is all that is backed up",
        help=f"set `{output.key}` to `{FOLDER}{name}`",
    )
