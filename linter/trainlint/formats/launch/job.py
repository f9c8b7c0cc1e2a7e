"""From a job's commands and what it asks for to fragments: one for each training that it starts.

Every launcher that holds commands is read alike: the commands are parsed as a shell script's are, the values of the
job (devices, machines, RAM) join what the command line says, and files are named as they lie in the repository: behind
`cd`, below the folder the job works in, or where a mount takes them from.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from trainlint.documents import Document, Node, Scalar
from trainlint.documents import Mapping as Tree
from trainlint.documents import Sequence as Items
from trainlint.formats.format import Draft
from trainlint.formats.fragment import Fragment, Reference
from trainlint.formats.launch import values as launch_values
from trainlint.formats.launch.command_line import Cells, Command
from trainlint.formats.launch.embedded import Source
from trainlint.formats.launch.installs import installed
from trainlint.formats.launch.launch import Launch, launches
from trainlint.formats.shell_launcher import script
from trainlint.run import Value

TRAINS = re.compile(
    r"accelerate|torchrun|torch\.distributed|deepspeed|llamafactory|axolotl|\btune\b|mlx_lm|\btrl\b|\bswift\b|\boumi\b|"
    r"python[\d.]*\b"
)
"""What a text must hold to start a training at all."""

GIVEN = ("SKYPILOT_", "OUMI_NUM_NODES", "DSTACK_")
"""How the names of variables begin that launchers set themselves."""
NOWHERE: Mapping[str, str] = {}
PACKAGED = "oumi://"
"""What names a file of Oumi's repository, wherever the command runs."""


def trainings(commands: Sequence[Command]) -> list[Launch]:
    """The launches among commands that start a training."""
    return [start for start in launches(commands) if start.trains]


def fragment(
    name: str,
    document: Document,
    root: Node | None,
    commands: Sequence[Command],
    values: Mapping[str, Value[object]],
    *,
    setup: Sequence[Command] = (),
    folder: str = "",
    mounts: Mapping[str, str] | None = None,
    managed: bool = False,
) -> Fragment:
    """The job's fragment; further trainings that it starts are among its `others`.

    `setup` runs before, in a shell of its own; `folder` is where the commands run, in the repository; `mounts` says
    where paths of the job come from; `managed`: something outside the command decides how many processes a machine
    starts and how they find each other.
    """
    starts: list[Launch | None] = [*trainings(commands)]
    where = folders(commands, folder)
    starts = starts or [None]
    values = {**installed(name, (*setup, *commands)), **values}
    made = [_one(name, document, root, start, commands, values, managed) for start in starts]
    for one, start in zip(made, starts, strict=True):
        at = where.get(id(start.command), folder) if start is not None else folder
        one.references[:] = [placed(reference, at, mounts or {}) for reference in one.references]
    for command in commands:
        word = script(command)
        if word is not None and word.text:
            reference = Reference("script", word.text, word.place, command.name)
            made[0].references.append(placed(reference, where[id(command)], mounts or {}))
    made[0].others = tuple(made[1:])
    return made[0]


def together(fragments: Sequence[Fragment]) -> Fragment:
    """Several jobs of one document as one fragment with the others beside it."""
    first, *rest = (one for each in fragments for one in (each, *each.others))
    first.others = tuple(rest)
    for one in rest:
        one.others = ()
    return first


def _one(
    name: str,
    document: Document,
    root: Node | None,
    start: Launch | None,
    commands: Sequence[Command],
    values: Mapping[str, Value[object]],
    managed: bool,
) -> Fragment:
    if start is None:
        found = Fragment(name, document, root if isinstance(root, Tree) else None)
    else:
        found = launch_values.arguments_of(document, start)
        launch_values.add_launcher(found, start)
        launch_values.add_references(found, [start])
        found.format = name
        launch_values.add_command(found, start)
        _leave_given(found)
        _processes(found, start, values, managed)
    found.starts = True
    for path, value in values.items():
        said = found.values.get(path)
        if path == "launch.env" and said is not None:
            continue  # it holds these already, and what the commands set
        if said is None or not said.written:
            found.values[path] = value
        elif said.value != value.value:
            found.values[path] = said.beside(replace(value, note="the command wins over the job around it"))
    found.facts |= {"commands": tuple(commands), "starts": (start,) if start is not None else (), "launch": start}
    return found


def _processes(found: Fragment, start: Launch, values: Mapping[str, Value[object]], managed: bool) -> None:
    """What the job's controller decides is not the launcher's default."""
    if not managed:
        return
    for path in ("parallel.per_node", "parallel.world"):
        value = found.values.get(path)
        if value is not None and not value.written:
            del found.values[path]
    nodes = values.get("parallel.nodes")
    if start.launcher == "python" and nodes is not None and "parallel.per_node" not in values:
        found.values["parallel.world"] = replace(nodes, origin="derived", note="one process on each machine")


def _leave_given(found: Fragment) -> None:
    """Take out of the environment what the launcher itself sets."""
    env = found.values.get("launch.env")
    if env is not None and isinstance(env.value, dict):
        own = {name: value for name, value in env.value.items() if not name.startswith(GIVEN)}
        if own:
            found.values["launch.env"] = replace(env, value=own, place=next(iter(own.values())).place)
        else:
            del found.values["launch.env"]


def folders(commands: Sequence[Command], start: str = "") -> dict[int, str]:
    """The folder each command runs in, by its identity; where `cd` goes somewhere unknown, the one before."""
    at = start
    found = {}
    for command in commands:
        found[id(command)] = at
        if command.name == "cd" and len(command.words) > 1 and (to := command.words[1].text) not in (None, "-"):
            at = posixpath.normpath(posixpath.join(at, to or ""))
    return found


def placed(reference: Reference, folder: str, mounts: Mapping[str, str] = NOWHERE) -> Reference:
    """A reference as a path of the repository; ids of models stay."""
    if reference.role in ("model", "dataset", "tokenizer"):
        return reference
    text = reference.text.removeprefix(PACKAGED)
    if text == reference.text and folder and "://" not in text:
        text = posixpath.normpath(posixpath.join(folder, text))
    for target, source in mounts.items():
        if text == target or text.startswith(target.rstrip("/") + "/"):
            text = posixpath.normpath(posixpath.join(source, text[len(target) :].lstrip("/")))
            break
    else:
        if folder.startswith(("/", "~")):  # where in the repository that folder comes from is not known
            text = reference.text
    return reference if text == reference.text else replace(reference, text=text)


def variables(source: Source, *nodes: Node | None) -> dict[str, tuple[Scalar, Cells]]:
    """The variables of mappings, or of lists of `NAME=value`, `{name: …, value: …}`; later ones win."""
    found: dict[str, tuple[Scalar, Cells]] = {}
    for node in nodes:
        if isinstance(node, Tree):
            for key, entry in node.index.items():
                if isinstance(entry.value, Scalar) and entry.value.value is not None:
                    found[key] = (entry.value, source.cells(entry.value))
        for item in node.items if isinstance(node, Items) else ():
            match item:
                case Scalar() if isinstance(item.value, str) and "=" in item.value:
                    cells = source.cells(item)
                    at = cells.text.index("=")
                    found[cells.text[:at]] = (item, Cells(cells.text[at + 1 :], cells.stands[at + 1 :]))
                case Tree():
                    key_node, value = item.get("name") or item.get("key"), item.get("value")
                    if isinstance(key_node, Scalar) and isinstance(value, Scalar) and value.value is not None:
                        found[str(key_node.value)] = (value, source.cells(value))
    return found


def known(variables: Mapping[str, tuple[Scalar, Cells]]) -> dict[str, Cells | None]:
    """The variables as a command's environment."""
    return {name: cells for name, (_, cells) in variables.items()}


def environment(cells: Mapping[str, tuple[Scalar, Cells]], name: str) -> dict[str, Value[object]]:
    """`launch.env`: the variables by name, each at its place."""
    if not cells:
        return {}
    values = {
        key: Value(text.text, "written", key, node.place, node.raw, file_format=name)
        for key, (node, text) in cells.items()
    }
    first = next(iter(values.values()))
    return {"launch.env": Value(values, "written", "env", first.place, "", file_format=name)}


def complete(draft: Draft) -> None:
    """The defaults of the trainer whose arguments the command line carries."""
    launch_values.complete(draft)
