"""What a launcher's fragment starts, for rules: its commands, the launches among them, a job's directives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from trainlint.formats.fragment import Fragment
from trainlint.run import TrainingRun, Value, known

if TYPE_CHECKING:
    from trainlint.formats.launch.command_line import Command as Command
    from trainlint.formats.launch.launch import Launch as Launch
    from trainlint.formats.launch.slurm import Directive as Directive


def commands(fragment: Fragment) -> tuple[Command, ...]:
    """Every command of the launcher, in order."""
    return cast("tuple[Command, ...]", fragment.facts.get("commands") or ())


def trainings(fragment: Fragment) -> tuple[Launch, ...]:
    """The launches that start a training."""
    told = cast("tuple[Launch, ...] | None", fragment.facts.get("trainings"))
    starts = cast("tuple[Launch, ...]", fragment.facts.get("starts") or ())
    return told if told is not None else tuple(start for start in starts if start.trains)


def directives(fragment: Fragment) -> Mapping[str, Directive]:
    """The `#SBATCH` options by long name; empty where the launcher is no Slurm script."""
    return cast("Mapping[str, Directive]", fragment.facts.get("slurm") or {})


def processes_here(run: TrainingRun) -> tuple[Value[int], int] | None:
    """The processes of one machine: the value somebody wrote, and their number; None where nobody did."""
    each, world, nodes = run.parallel.per_node, run.parallel.world, known(run.parallel.nodes, 1)
    if each is not None and each.written:
        return each, each.value
    if world is None or not world.written or not nodes:
        return None
    return world, world.value // nodes
