"""Fragments of several files to runs: who belongs together, who wins where two disagree, what follows."""

from trainlint.resolve.join import Reason
from trainlint.resolve.resolve import Resolved, resolve

__all__ = ["Reason", "Resolved", "resolve"]
