"""Shell and Slurm scripts that start a training: launchers, their options, and the arguments of what they start.

A script that passes a trainer's arguments is a run of its own; one that only starts a script or a config joins that
one's run. Of several launches the one that says most counts. `facts` hold more for rules: *commands* (all of them,
`command_line.Command`), *starts* (`launch.Launch`, all of them), *launch* (the one that counts), *slurm* (directives
by name), *trainer*, *unknown*, *open* (a variable nobody knows may add arguments).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainlint.documents import Document, Node
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment

if TYPE_CHECKING:
    from trainlint.formats.launch.command_line import Command, Word
    from trainlint.formats.launch.launch import Launch

NAME = "shell-launcher"
_HINT = re.compile(
    r"accelerate|torchrun|torch\.distributed|deepspeed|python|llamafactory|axolotl|\btune run|mlx_lm|\btrl |\bswift |"
    r"#SBATCH|\buv run|\bmegatron (?:sft|pt|rlhf)|\blitgpt "
)
_GPUS = re.compile(r"^#SBATCH.*\bgpu", re.MULTILINE)
_SHELLS = frozenset(("bash", "sh", "zsh", "source", "."))
_ENDINGS = (".sh", ".bash", ".slurm")


def recognise(document: Document, root: Node | None) -> int:
    """A command that starts a training, or a job with GPUs that starts another script."""
    if document.syntax != "shell" or not _HINT.search(document.text):
        return 0
    commands, starts = _parsed(document)
    if any(start.trains for start in starts):
        return 85
    asks = _GPUS.search(document.text)
    return 60 if asks and (likely(starts) or any(script(command) is not None for command in commands)) else 0


def read(document: Document, root: Node | None) -> Fragment:
    """What the launch that says most passes on, what the job asks for, and the files that are named."""
    from trainlint.formats.fragment import Reference
    from trainlint.formats.launch import values
    from trainlint.formats.launch.job import folders, placed
    from trainlint.formats.launch.slurm import directives

    commands, starts = _parsed(document)
    training = [start for start in starts if start.trains]
    if not training and _GPUS.search(document.text):
        training = likely(starts)
    main = max(training, key=values.weight, default=None)
    found = directives(document)
    where = folders(commands)
    fragment = values.arguments_of(document, main) if main is not None else Fragment(NAME, document)
    values.add_job(fragment, found, main)
    if main is not None:
        values.add_launcher(fragment, main)
        values.add_command(fragment, main)
        fragment.references[:] = [placed(one, where[id(main.command)]) for one in fragment.references]
    for start in training:
        known = len(fragment.references)
        values.add_references(fragment, [start])
        fragment.references[known:] = [placed(one, where[id(start.command)]) for one in fragment.references[known:]]
    for command in commands:
        word = script(command)
        if word is not None:
            reference = Reference("script", word.text or "", word.place, command.name)
            fragment.references.append(placed(reference, where[id(command)]))
    fragment.starts = True
    fragment.facts |= {"commands": commands, "starts": starts, "launch": main, "slurm": found}
    fragment.facts["trainings"] = tuple(training)
    return fragment


def complete(draft: Draft) -> None:
    """The defaults of the trainer whose arguments the command line carries."""
    from trainlint.formats.launch import values as launch_values

    launch_values.complete(draft)


def _parsed(document: Document) -> tuple[tuple[Command, ...], tuple[Launch, ...]]:
    from trainlint.formats.launch.values import parsed

    return parsed(document.file, document.text)


def likely(starts: tuple[Launch, ...]) -> list[Launch]:
    """The programs that a job with GPUs most likely trains with, where none says so by its name: `main.py`."""
    return [start for start in starts if ((start.program and start.program.text) or "").endswith("main.py")]


def script(command: Command) -> Word | None:
    """The shell script that a command runs, or None."""
    for word, behind in zip(command.words, command.words[1:], strict=False):
        if (word.text or "").rpartition("/")[2] in _SHELLS and (behind.text or "").endswith(_ENDINGS):
            return behind
    return command.words[0] if command.name.endswith(_ENDINGS) else None


FORMAT = Format(NAME, "Shell or Slurm script that launches a training", recognise, read, complete)
