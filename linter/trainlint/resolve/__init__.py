"""Fragments of several files to runs: who belongs together, who wins where two disagree, what follows."""

from trainlint.resolve.resolve import Resolved, resolve

__all__ = ["Resolved", "resolve"]
