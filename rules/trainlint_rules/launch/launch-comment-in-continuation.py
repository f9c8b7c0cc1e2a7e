"""A comment inside of a command that goes on over several lines ends it."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.api import Edit, FileView, Fix, Found, Place, rule, started


@rule(severity="error", on="file")
def check(view: FileView) -> Iterator[Found]:
    for command in started.commands(view.fragment):
        cut = command.cut or _escaped(view, command)
        if cut is None:
            continue
        line = view.document.line(cut.line)
        following = view.document.line(cut.line + 1).split()
        lost = f"`{following[0]}` and what follows" if following else "what follows"
        yield Found(
            at=cut,
            message=f"the comment ends the command: {lost} is no part of it",
            help="move the comment above the command",
            notes=[(command.words[0].place if command.words else None, "the command")],
            fix=_without(view, line, cut, command.place) if view.document.syntax == "shell" else None,
        )


def _escaped(view: FileView, command: started.Command) -> Place | None:
    """A comment behind a backslash that is not the last of its line, and so continues nothing: `\\ # note`."""
    for word in command.words:
        line = view.document.line(word.place.line)
        start = word.place.column - 1
        if word.raw.startswith("\\") and line[start + 1 :].lstrip().startswith("#"):
            start = line.index("#", start)
            return Place(word.place.file, word.place.line, start + 1, word.place.line, len(line) + 1)
    return None


def _without(view: FileView, line: str, cut: Place, command: Place) -> Fix:
    """The comment above the command, and its line out of the way or going on without it."""
    before = line[: cut.column - 1].rstrip().removesuffix("\\")
    comment = line[cut.column - 1 : cut.end_column - 1].rstrip().removesuffix("\\").rstrip()
    edits = []
    if not view.document.line(command.line - 1).rstrip().endswith("\\"):
        first = view.document.line(command.line)
        indent = first[: len(first) - len(first.lstrip())]
        edits.append(Edit(Place(cut.file, command.line, 1, command.line, 1), f"{indent}{comment}\n"))
    if before.strip():
        place = cut._replace(column=len(before.rstrip()) + 2)
        edits.append(Edit(place, "\\"))
    else:
        edits.append(Edit(Place(cut.file, cut.line, 1, cut.line + 1, 1), ""))
    return Fix(tuple(edits), "safe", "move the comment above the command")
