"""What somebody says of a run from outside its files: on the command line, or in the settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from trainlint.run import Value


class Stated(Protocol):
    """Facts of a run that its files do not hold; None where nothing is said."""

    @property
    def device(self) -> Value[str] | None:
        """Name of the device."""

    @property
    def devices(self) -> Value[int] | None:
        """How many devices there are."""

    @property
    def device_memory(self) -> Value[int] | None:
        """Memory of one device in bytes."""

    @property
    def host_memory(self) -> Value[int] | None:
        """RAM of the machine in bytes."""

    @property
    def profile(self) -> str:
        """The settings profile."""

    @property
    def versions(self) -> Mapping[str, Value[str]]:
        """Versions by package."""

    @property
    def rows(self) -> Value[int] | None:
        """Samples in the training data."""

    @property
    def tokens(self) -> Mapping[str, Value[int]]:
        """Lengths of the samples by percentile, in tokens."""
