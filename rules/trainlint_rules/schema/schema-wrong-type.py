"""A value of a type, or outside the choices, that its key takes."""

from collections.abc import Iterator

from trainlint.api import FileView, Found, Node, Scalar, Sequence, faults, history, rule

LONGEST = 40
"""Characters of a list that are shown as written."""


@rule(severity="warning", on="file")
def check(view: FileView) -> Iterator[Found]:
    for fault in faults(view.fragment):
        node = fault.entry.value
        yield Found(
            at=node,
            message=f"{_said(view, fault.dotted, node)} is not {fault.wanted}",
            help=_help(node, fault.wanted, fault.choices),
            severity="error" if fault.refused else None,
        )


def _said(view: FileView, dotted: str, node: Node) -> str:
    if isinstance(node, Scalar):
        return f"`{dotted}: {node.raw}`"
    line = view.document.line(node.place.line)[node.place.column - 1 : node.place.end_column - 1]
    if node.place.line == node.place.end_line and len(line) <= LONGEST:
        return f"`{dotted}: {line}`"
    return f"the list at `{dotted}`" if isinstance(node, Sequence) else f"the mapping at `{dotted}`"


def _help(node: Node, wanted: str, choices: tuple[object, ...]) -> str:
    if isinstance(node, Sequence) and len(node.items) == 1 and not choices:
        only = node.items[0]
        if isinstance(only, Scalar) and not isinstance(only.value, str):
            return f"write `{only.raw}`, without a list around it"
    if isinstance(node, Scalar) and isinstance(node.value, str):
        if node.value in ("None", "none") and node.plain and not choices:
            return "write `null`, or remove the key"
        close = history.closest(node.value, [choice for choice in choices if isinstance(choice, str)])
        if close:
            return f"write `{close}`"
    return f"write {wanted}"
