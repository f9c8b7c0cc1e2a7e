"""A key stands twice in one mapping."""

from collections import defaultdict
from collections.abc import Iterator

from trainlint.api import Entry, FileView, Found, Mapping, Node, Scalar, Sequence, plain, remove_line, rule

REFUSES = ("llamafactory", "torchtune")
"""Formats read by OmegaConf, which raises; PyYAML and json keep the last without a word."""


@rule(severity="error", on="file")
def check(view: FileView) -> Iterator[Found]:
    if view.fragment.root is None or not any(problem.kind == "duplicate-key" for problem in view.document.problems):
        return
    seen: set[tuple[int, int]] = set()
    for mapping in _mappings(view.fragment.root):
        named: dict[str, list[Entry]] = defaultdict(list)
        for entry in mapping.entries:
            if not entry.merged:
                named[entry.name].append(entry)
        for entries in named.values():
            last = entries[-1]
            for entry in entries[:-1]:
                where = entry.key.place[1:3]
                if where in seen:  # an anchor's mapping is met at each of its aliases
                    continue
                seen.add(where)
                yield _found(view, entry, last)


def _found(view: FileView, entry: Entry, last: Entry) -> Found:
    same = plain(entry.value) == plain(last.value)
    refused = view.fragment.format in REFUSES and view.document.syntax == "yaml"
    what = "the loader refuses it" if refused else "only the last counts"
    written = f"`{entry.name}: {entry.value.raw}`" if isinstance(entry.value, Scalar) else f"`{entry.name}`"
    return Found(
        at=entry.key,
        message=f"{written} stands again on line {last.key.place.line}: {what}",
        help="keep one of them",
        notes=[(last.key, "again" if refused else "the one that counts")],
        fix=remove_line(view.document, entry, "safe" if same else "unsafe"),
        severity="error" if refused else "warning",
    )


def _mappings(node: Node) -> Iterator[Mapping]:
    match node:
        case Mapping():
            yield node
            for entry in node.entries:
                yield from _mappings(entry.value)
        case Sequence():
            for item in node.items:
                yield from _mappings(item)
        case Scalar():
            return
