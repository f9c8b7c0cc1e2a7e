"""What a launcher's text says, as plain values, places and references."""

from __future__ import annotations

from trainlint.formats import Fragment

from .drafting import fragment, fragments


def launcher(text: str, name: str, file: str = "job.yaml") -> Fragment:
    """The one fragment of a launcher, which must be of that format."""
    found = fragment(text, file)
    assert (found.format, found.starts) == (name, True)
    return found


def said(found: Fragment, *prefixes: str) -> dict[str, object]:
    """The values at paths that begin with one of these; of the environment the words."""
    values: dict[str, object] = {}
    for path, value in found.values.items():
        if path.startswith(prefixes or ("",)):
            values[path] = value.value
    if isinstance(env := values.get("launch.env"), dict):
        values["launch.env"] = {name: value.value for name, value in env.items()}
    return values


def place(found: Fragment, path: str) -> tuple[int, int]:
    """Line and column of a value."""
    at = found.values[path].place
    assert at is not None
    return at.line, at.column


def files(found: Fragment) -> set[tuple[str, str]]:
    """Role and path of what the commands name."""
    return {(one.role, one.text) for one in found.references}


def taken(text: str, file: str = "job.yaml") -> list[str]:
    """The formats that a text is taken for."""
    return [one.format for one in fragments(text, file)]
