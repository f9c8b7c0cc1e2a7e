"""How much device memory a training run needs: exact sizes of what torch allocates, without torch."""

from trainlint.memory.errors import MemoryModelError, MissingShape, UnknownArchitecture
from trainlint.memory.estimate import Estimate, estimate
from trainlint.memory.setup import Setup

__all__ = ["Estimate", "MemoryModelError", "MissingShape", "Setup", "UnknownArchitecture", "estimate"]
