"""The text is no YAML, JSON, TOML or Python."""

from collections.abc import Iterator

from trainlint.api import Document, Found, rule

NAMES = {"yaml": "YAML", "json": "JSON", "toml": "TOML", "python": "Python", "shell": "shell", "text": "text"}


@rule(severity="error", on="text")
def check(document: Document) -> Iterator[Found]:
    for problem in document.problems:
        if problem.kind == "syntax":
            yield Found(at=problem.place, message=f"not {NAMES[document.syntax]}: {problem.message}")
