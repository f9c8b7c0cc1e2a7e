"""Findings in notebooks: from the code made of the cells to the places in the file, fixes included."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from trainlint.rule import Code, Edit, Finding, Fix, Note

if TYPE_CHECKING:
    from trainlint.documents.notebook import Notebook


def located(finding: Finding, notebooks: Mapping[str, Notebook]) -> Finding:
    """A finding at its places in the files; one in a notebook names the cell and carries the line of code."""
    notebook = notebooks.get(finding.place.file)
    changed = replace(
        finding,
        related=tuple(_note(note, notebooks) for note in finding.related),
        fix=None if finding.fix is None else _fix(finding.fix, notebooks),
    )
    if notebook is None:
        return changed
    place = finding.place
    code = notebook.code.split("\n")[place.line - 1 : place.line]
    end = place.end_column if place.end_line == place.line else len(code[0]) + 1 if code else 1
    return replace(
        changed,
        place=notebook.place(place),
        message=f"{finding.message}, in cell {notebook.cell(place)}",
        code=Code(code[0], place.column, end) if code else None,
    )


def _note(note: Note, notebooks: Mapping[str, Notebook]) -> Note:
    notebook = notebooks.get(note.place.file)
    if notebook is None:
        return note
    return Note(notebook.place(note.place), f"{note.message}, in cell {notebook.cell(note.place)}")


def _fix(fix: Fix, notebooks: Mapping[str, Notebook]) -> Fix:
    return replace(fix, edits=tuple(_edit(edit, notebooks) for edit in fix.edits))


def _edit(edit: Edit, notebooks: Mapping[str, Notebook]) -> Edit:
    """An edit of code as one of the JSON strings it stands in; one over several lines joins their strings."""
    notebook = notebooks.get(edit.place.file)
    if notebook is None:
        return edit
    return Edit(notebook.place(edit.place), json.dumps(edit.text, ensure_ascii=False)[1:-1])
