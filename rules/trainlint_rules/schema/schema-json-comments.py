"""A comment or a comma too many in JSON that a strict parser reads."""

from collections.abc import Iterator

from trainlint.api import Edit, Fix, Found, Fragment, Problem, RunView, rule

KINDS = ("json-comment", "trailing-comma")
LENIENT = ("deepspeed",)
"""DeepSpeed itself reads hjson, which takes both; through transformers and accelerate it is `json.load`."""
STRICT_ROOTS = ("hf-trainer", "trl", "llamafactory", "axolotl", "ms-swift", "accelerate")


@rule(severity="error")
def check(view: RunView) -> Iterator[Found]:
    for fragment in view.fragments:
        if fragment.document.syntax != "json" or not fragment.document.problems:
            continue
        if fragment.format in LENIENT and not _through_transformers(view, fragment):
            continue
        for problem in fragment.document.problems:
            if problem.kind in KINDS:
                yield Found(
                    at=problem.place,
                    message=f"{problem.message}: `json.load` reads this file and refuses it",
                    help="remove it",
                    fix=_removed(fragment, problem),
                )


def _through_transformers(view: RunView, fragment: Fragment) -> bool:
    """Whether the run hands the file to transformers or accelerate: it says `auto`, or their config names it."""
    said = any(other.format in STRICT_ROOTS for other in view.fragments)
    return said or '"auto"' in fragment.document.text


def _removed(fragment: Fragment, problem: Problem) -> Fix:
    """Take it out, with its line where it stands alone, or with the spaces before it."""
    place = problem.place
    first, last = fragment.document.line(place.line), fragment.document.line(place.end_line)
    before, behind = first[: place.column - 1], last[place.end_column - 1 :]
    if not before.strip() and not behind.strip():
        place = place._replace(column=1, end_line=place.end_line + 1, end_column=1)
    elif not behind.strip():
        place = place._replace(column=len(before.rstrip()) + 1)
    return Fix((Edit(place, ""),), "safe", "remove it")
