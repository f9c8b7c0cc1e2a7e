"""How a parser says that a text can not be read."""

from __future__ import annotations

from trainlint.documents.tree import Place, ProblemKind


class Unreadable(Exception):  # noqa: N818 - it names what the text is
    """The text stops making sense at `place`."""

    def __init__(self, kind: ProblemKind, message: str, place: Place) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.place = place
