"""A config's text → its fragment and the values of the run it gives alone."""

from __future__ import annotations

from trainlint.documents import from_text, syntax_of
from trainlint.formats import Draft, Fragment
from trainlint.formats.registry import built_in, recognise
from trainlint.run import Value, build


def fragments(text: str, file: str = "train.yaml") -> list[Fragment]:
    """What is recognised in a text, by all formats that come with trainlint."""
    return [fragment for _, fragment in recognise(from_text(file, text, syntax_of(file) or "yaml"), built_in())]


def fragment(text: str, file: str = "train.yaml") -> Fragment:
    """The one fragment of a text."""
    found = fragments(text, file)
    assert len(found) == 1, found
    return found[0]


def draft(
    text: str, *others: Fragment, file: str = "train.yaml", known: dict[str, object] | None = None, **versions: str
) -> Draft:
    """The completed run of a text with further fragments that joined it; `known`: values from elsewhere."""
    root = fragment(text, file)
    values: dict[str, Value[object]] = {path: Value(value, "derived") for path, value in (known or {}).items()}
    for member in (*reversed(others), root):
        values.update(member.values)
    made = Draft((root, *others), values, {name: Value(version) for name, version in versions.items()})
    next(one for one in built_in() if one.name == root.format).complete(made)
    build(root.file, root.format, (root.file,), made.values, made.possible)
    return made


def options(made: Draft, path: str) -> set[object]:
    """What is possible at a path."""
    return {value.value for value in made.possible.get(path, ())}
