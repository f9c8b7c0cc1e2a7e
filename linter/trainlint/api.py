"""The one door for rules and plugins. Everything that a rule or a format may use is named here.

What costs time to import and is not needed for every file (facts, advice on memory, the reading of scripts) is imported
when a rule asks for it by name.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from trainlint.documents import Document, Entry, Mapping, Node, Place, Problem, Scalar, Sequence, plain, scalars
from trainlint.formats import Draft, Format, Fragment, Reference, say
from trainlint.formats.launch import started
from trainlint.plugins import hookimpl
from trainlint.result import Result
from trainlint.rule import (
    Edit,
    FileView,
    Finding,
    Fix,
    Found,
    Note,
    Rule,
    RuleError,
    RunView,
    Severity,
    remove_line,
    rename_key,
    rule,
    said,
    set_value,
    written,
)
from trainlint.run import TrainingRun, Value, known
from trainlint.units import gib, parse, quantity

if TYPE_CHECKING:
    from trainlint.advice import (
        assumed,
        at_length,
        budget,
        change_words,
        chosen_length,
        device_words,
        firm,
        may_be_sharded,
        memory_advice,
        memory_help,
        phase_words,
        pressure_spot,
        sharded,
    )
    from trainlint.facts import devices, history, instances, layers, models, versions
    from trainlint.formats.keys import UnknownKey, unknown_keys
    from trainlint.formats.scripts import amp
    from trainlint.formats.scripts.calls import Assignment, Call
    from trainlint.formats.scripts.reading import assignments_of, calls_of, setup_of
    from trainlint.formats.scripts.setup import Setup
    from trainlint.formats.semantics.departed import Departed, departed, installed, since
    from trainlint.formats.validity import Fault, faults
    from trainlint.memory.families import linear_names

LAZY = {
    "trainlint.advice": (
        "assumed",
        "at_length",
        "budget",
        "change_words",
        "chosen_length",
        "device_words",
        "firm",
        "may_be_sharded",
        "memory_advice",
        "memory_help",
        "phase_words",
        "pressure_spot",
        "sharded",
    ),
    "trainlint.facts": ("devices", "history", "instances", "layers", "models", "versions"),
    "trainlint.formats.scripts": ("amp",),
    "trainlint.formats.scripts.calls": ("Assignment", "Call"),
    "trainlint.formats.semantics.departed": ("Departed", "departed", "installed", "since"),
    "trainlint.formats.keys": ("UnknownKey", "unknown_keys"),
    "trainlint.formats.scripts.setup": ("Setup",),
    "trainlint.formats.scripts.reading": ("assignments_of", "calls_of", "setup_of"),
    "trainlint.formats.validity": ("Fault", "faults"),
    "trainlint.memory.families": ("linear_names",),
}
"""Names by the module, or the package of modules, that is imported for them."""
PACKAGES = ("trainlint.facts", "trainlint.formats.scripts")
_WHERE = {name: module for module, names in LAZY.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a name of `LAZY` at the first question."""
    module = _WHERE.get(name)
    if module is None:
        raise AttributeError(f"trainlint.api has no {name}")
    found: object = import_module(f"{module}.{name}") if module in PACKAGES else getattr(import_module(module), name)
    globals()[name] = found
    return found


__all__ = [
    "Assignment",
    "Call",
    "Departed",
    "Document",
    "Draft",
    "Edit",
    "Entry",
    "Fault",
    "FileView",
    "Finding",
    "Fix",
    "Format",
    "Found",
    "Fragment",
    "Mapping",
    "Node",
    "Note",
    "Place",
    "Problem",
    "Reference",
    "Result",
    "Rule",
    "RuleError",
    "RunView",
    "Scalar",
    "Sequence",
    "Setup",
    "Severity",
    "TrainingRun",
    "UnknownKey",
    "Value",
    "amp",
    "assignments_of",
    "assumed",
    "at_length",
    "budget",
    "calls_of",
    "change_words",
    "chosen_length",
    "departed",
    "device_words",
    "devices",
    "faults",
    "firm",
    "gib",
    "history",
    "hookimpl",
    "installed",
    "instances",
    "known",
    "layers",
    "linear_names",
    "may_be_sharded",
    "memory_advice",
    "memory_help",
    "models",
    "parse",
    "phase_words",
    "plain",
    "pressure_spot",
    "quantity",
    "remove_line",
    "rename_key",
    "rule",
    "said",
    "say",
    "scalars",
    "set_value",
    "setup_of",
    "sharded",
    "since",
    "started",
    "unknown_keys",
    "versions",
    "written",
]
