"""The one door for rules and plugins. Everything that a rule or a format may use is named here."""

from collections.abc import Mapping as ConfigMapping
from typing import TYPE_CHECKING

from trainlint.advice import (
    assumed,
    at_length,
    budget,
    change_words,
    chosen_length,
    device_words,
    may_be_sharded,
    memory_help,
    phase_words,
    pressure_spot,
    sharded,
)
from trainlint.documents import Document, Entry, Mapping, Node, Place, Problem, Scalar, Sequence, plain, scalars
from trainlint.facts import devices, history, instances, layers, models, versions
from trainlint.formats import Draft, Format, Fragment, Reference, amp, say, started
from trainlint.formats.departed import Departed, departed, installed, since
from trainlint.formats.keys import UnknownKey, unknown_keys
from trainlint.formats.scripts import assignments_of, calls_of, setup_of
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

if TYPE_CHECKING:  # types that rules on scripts name; reading scripts is imported when there is one
    from trainlint.formats.calls import Assignment as Assignment
    from trainlint.formats.calls import Call as Call
    from trainlint.formats.script_setup import Setup as Setup

__all__ = [
    "Departed",
    "Document",
    "Draft",
    "Edit",
    "Entry",
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
    "gib",
    "history",
    "hookimpl",
    "installed",
    "instances",
    "known",
    "layers",
    "linear_names",
    "may_be_sharded",
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


def linear_names(config: ConfigMapping[str, object]) -> tuple[str, ...]:
    """Last names of the linear layers of a model (its `config.json`); empty where the architecture is not known.

    The memory model is imported at the first call: most files are linted without it.
    """
    from trainlint.memory import linear_names as names

    return names(config)
