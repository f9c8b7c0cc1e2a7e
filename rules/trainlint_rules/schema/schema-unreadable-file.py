"""A file that can not be read as a text, or that no loader could take."""

from collections.abc import Iterator

from trainlint.api import Document, Found, rule

KINDS = ("unreadable", "too-large", "binary", "encoding", "too-deep", "alias-bomb")
HELP = {
    "encoding": "save it as UTF-8",
    "too-large": "leave data out of the folder that is linted, or `exclude` it",
    "byte-order-mark": "save it as UTF-8 without a mark: `json.load` refuses one",
}


@rule(severity="error", on="text")
def check(document: Document) -> Iterator[Found]:
    for problem in document.problems:
        if problem.kind in KINDS:
            yield Found(at=problem.place, message=f"not read: {problem.message}", help=HELP.get(problem.kind, ""))
        elif problem.kind == "byte-order-mark":
            help_line = HELP["byte-order-mark"] if document.syntax == "json" else "save it as UTF-8 without a mark"
            yield Found(at=problem.place, message=problem.message, help=help_line, severity="info")
