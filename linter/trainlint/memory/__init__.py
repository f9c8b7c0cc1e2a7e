"""How much device memory a training run needs: the sizes of what torch allocates, worked out without torch.

    estimate(config, setup)   the peak of one device, by phase
    ledger(config, setup)     what the peak consists of, exactly
    parameters(config)        how many parameters a model has, by kind
    linear_names(config)      what an adapter can target

`config` is a Hugging Face `config.json` as a mapping; nothing here reads other files than our own architectures.
"""

from trainlint.memory.errors import MemoryModelError, MissingShape, UnknownArchitecture
from trainlint.memory.estimate import Estimate, estimate, ledger
from trainlint.memory.families import Counts, linear_names, parameters
from trainlint.memory.ledger import Entry, Ledger
from trainlint.memory.setup import Setup

__all__ = [
    "Counts",
    "Entry",
    "Estimate",
    "Ledger",
    "MemoryModelError",
    "MissingShape",
    "Setup",
    "UnknownArchitecture",
    "estimate",
    "ledger",
    "linear_names",
    "parameters",
]
