"""Python scripts that train: what their calls say literally, and the order of their mixed-precision calls.

The script is never run. `facts` hold more for rules: *calls* and *assignments* (`calls.Call`, `calls.Assignment`),
*amp* (`amp.Amp`), *setup* (`script_setup.Setup`), *unknown* (paths that only a run decides), *trainer*: transformers,
trl, lightning, accelerate, torch, or an empty word where the script only prepares a model.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from trainlint.documents import Document, Node
from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment
from trainlint.formats.scripts.training_names import CONFIGS, OPTIMIZERS, TRAINERS

if TYPE_CHECKING:
    from trainlint.documents.notebook import Notebook

NAME = "python-script"
_HINT = re.compile(r"TrainingArguments|\w+Config\(|\w*Trainer\(|\.backward\(|Accelerator\(|GradScaler\(|get_peft_model")
_LIGHTNING = re.compile(r"LightningModule\):[\s\S]*?def training_step\(")
"""A module whose steps Lightning calls."""
_PREPARES = frozenset(("LoraConfig", "get_peft_model", "BitsAndBytesConfig", "prepare_model_for_kbit_training"))


def recognise(document: Document, root: Node | None) -> int:
    """Calls of a trainer or its config, a training loop, a Lightning module, or what prepares a model for training."""
    if document.module is None:
        return 0
    module = 60 if _LIGHTNING.search(document.text) else 0
    if not _HINT.search(document.text):
        return module
    from trainlint.formats.scripts.syntax_nodes import called as name_of
    from trainlint.formats.scripts.syntax_nodes import nodes

    called = {name_of(node) for node in nodes(document.module) if isinstance(node, ast.Call)}
    if called & (CONFIGS | (TRAINERS - {"Trainer"})):
        return 85
    if "backward" in called and (called & {"step", "Accelerator", "GradScaler"} or called & OPTIMIZERS):
        return 80
    if "Trainer" in called and (called & {"fit", "train"} or "transformers" in document.text):
        return 75
    if "GradScaler" in called or called & _PREPARES:
        return 60
    return module


def read(document: Document, root: Node | None) -> Fragment:
    """Values of the calls that belong together, the model's id, and facts for rules."""
    from trainlint.formats.scripts.amp_flow import flow
    from trainlint.formats.scripts.calls import script
    from trainlint.formats.scripts.setup import setup
    from trainlint.formats.scripts.values import fragment_of_script, trainer_of

    found = script(document)
    made = setup(found)
    amp = flow(found)
    fragment = fragment_of_script(document, found, made)
    trainer = trainer_of(found, made, amp)
    generates = bool(found.named("generate", "pipeline")) and not trainer
    fragment.framework = trainer or "transformers"
    if document.notebook is not None:
        _install(fragment, document.file, document.notebook)
    fragment.launches = bool(trainer) or (not generates and bool(made.quantization or made.adapters))
    fragment.facts |= {
        "trainer": trainer,
        "calls": tuple(found.calls),
        "assignments": tuple(found.assignments),
        "amp": amp,
        "setup": made,
        "adapter": made.adapter,
    }
    return fragment


def _install(fragment: Fragment, file: str, notebook: Notebook) -> None:
    """The versions that the cells of a notebook install before they train."""
    from trainlint.formats.launch.command_line import commands
    from trainlint.formats.launch.installs import installed

    if "install" in notebook.shell:
        fragment.values.update(installed(NAME, commands(file, notebook.shell)))


def complete(draft: Draft) -> None:
    """The defaults of the trainer that the script calls, or of its own loop."""
    from trainlint.formats.scripts import defaults as script_defaults

    script_defaults.complete(draft)


FORMAT = Format(NAME, "Python training script", recognise, read, complete, "torch", "torch")
