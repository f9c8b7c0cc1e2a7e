"""The peak, taken apart."""

from __future__ import annotations

from collections.abc import Mapping

from trainlint.memory.budget import Ledger
from trainlint.memory.estimate import solve
from trainlint.memory.setup import Setup


def ledger(config: Mapping[str, object], setup: Setup) -> Ledger:
    """What lives at the peak: entries whose bytes sum up to it exactly."""
    return solve(config, setup, register=True).budget.ledger()
