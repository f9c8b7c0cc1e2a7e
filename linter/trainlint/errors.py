"""Errors that the user can mend: they are shown as one line with a place, without a traceback, and exit with 2."""

from __future__ import annotations

from trainlint.documents import Place


class TrainlintError(Exception):
    """Something in the usage, the settings or a rule file that keeps trainlint from doing its job."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.place = place

    def __str__(self) -> str:
        if self.place is None:
            return self.message
        return f"{self.place.file}:{self.place.line}:{self.place.column}: {self.message}"
