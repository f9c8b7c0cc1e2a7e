"""What trainlint knows, listed: rules, formats, devices, models; and a rule's page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from trainlint import suppress
from trainlint.errors import TrainlintError
from trainlint.session import Toolbox
from trainlint.settings import nearest

Row = dict[str, object]

OWN = {
    "suppression-malformed": """\
A comment for trainlint says nothing that it understands, so it silences nothing.

A word, a rule or the brackets are missing or misspelled. Write `# trainlint: ignore[rule-name] reason` on the line of
the finding or alone on the one above, `# trainlint: ignore-file[rule-name] reason` alone on a line for the whole file.
""",
    "suppression-unused": """\
A comment silences a rule that finds nothing there.

What it was for has been mended, or it stands on the wrong line: remove it, so that it does not silence the next
mistake. Rules that were not asked, for want of a value or by choice, do not count.
""",
    "suppression-without-reason": """\
A comment silences a rule and does not say why.

The next reader can not tell whether it still holds: write the reason behind the bracket.
""",
}
"""Pages of what is found about comments that silence, which is no rule of its own."""


def toolbox() -> Toolbox:
    """Rules and formats as a check started here would use them."""
    return Toolbox(nearest(Path.cwd()).rule_paths)


def explain(name: str) -> str:
    """A rule's page. Raises TrainlintError for a name that no rule has."""
    if name in OWN:
        return f"# {name}\n\n{OWN[name]}".strip()
    rules = {rule.name: rule for rule in toolbox().rules}
    rule = rules.get(name)
    if rule is None:
        close = get_close_matches(name, (*rules, *OWN), 3, 0.5)
        hint = f", did you mean {' or '.join(f'`{word}`' for word in close)}" if close else ""
        raise TrainlintError(f"no rule is named `{name}`{hint}")
    page = rule.page().strip()
    return page or f"# {name}\n\nThis rule has no page."


def listing(what: str, pattern: str, output_format: str) -> str:
    """A list of what there is, of names that contain `pattern`. Raises TrainlintError where none does."""
    rows = [row for row in _rows(what) if pattern.lower() in str(row["name"]).lower()]
    if pattern and not rows:
        raise TrainlintError(f"none of the {what} has `{pattern}` in its name")
    if output_format == "json":
        return json.dumps(rows, indent=1)
    if output_format == "names":
        return "\n".join(str(row["name"]) for row in rows)
    if output_format == "markdown":
        return _index(pattern) if what == "rules" else _table([{key: _cell(row[key]) for key in row} for row in rows])
    widths = {key: max((len(_cell(row[key])) for row in rows), default=0) for key in (rows[0] if rows else {})}
    return "\n".join("  ".join(f"{_cell(value):<{widths[key]}}" for key, value in row.items()).rstrip() for row in rows)


def _index(pattern: str) -> str:
    """All rules with such names as a page: a table a family, each rule linked to its page.

    Links start at the folder that holds the rules' package, where the page is meant to stand.
    """
    families: dict[str, list[dict[str, str]]] = {}
    for rule in toolbox().rules:
        if pattern.lower() in rule.name.lower():
            source = Path(rule.source)
            page = f"{source.parents[1].name}/{rule.family}/{rule.name}.md"
            there = (source.parent / f"{rule.name}.md").exists()
            families.setdefault(rule.family, []).append(
                {
                    "rule": f"[{rule.name}]({page})" if there else rule.name,
                    "severity": rule.severity + "".join(f", profile {name}" for name in rule.profiles),
                    "formats": ", ".join(rule.formats) or "all",
                    "about": _first_line(rule.page()),
                }
            )
    for name, page in OWN.items():
        if pattern.lower() in name.lower():
            families.setdefault("suppression", []).append(
                {"rule": name, "severity": suppress.OWN[name], "formats": "all", "about": _first_line(page)}
            )
    count = sum(map(len, families.values()))
    head = [
        f"# {count} rules",
        "",
        "Written by `trainlint rules --output-format markdown`; `trainlint explain NAME` prints a page.",
    ]
    return "\n".join([*head, *(f"\n## {family}\n\n{_table(rows)}" for family, rows in families.items())])


def _table(rows: list[dict[str, str]]) -> str:
    """Rows as a table of Markdown."""
    if not rows:
        return ""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _cell(value: object) -> str:
    return "" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _rows(what: str) -> Iterable[Row]:
    match what:
        case "rules":
            for rule in toolbox().rules:
                yield {"name": rule.name, "severity": rule.severity, "about": _first_line(rule.page())}
            for name, page in OWN.items():
                yield {"name": name, "severity": suppress.OWN[name], "about": _first_line(page)}
        case "formats":
            for form in toolbox().formats:
                yield {"name": form.name, "about": form.title}
        case "devices":
            _ = toolbox().manager  # plugins bring facts
            yield from _devices()
        case _:
            _ = toolbox().manager
            yield from _models()


def _first_line(page: str) -> str:
    """The first sentence behind a page's title."""
    text = "\n".join(line for line in page.splitlines() if not line.startswith("# ")).strip()
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"\.\s+(?=[^a-z\d])", paragraph)[0].rstrip(".")


def _devices() -> Iterable[Row]:
    from trainlint.facts import devices

    for device in devices.every():
        memory = device.memory
        size = None if memory is None else f"{memory[1] / (1 << 30):.1f} GiB"
        capability = None if device.capability is None else ".".join(map(str, device.capability))
        yield {"name": device.name, "memory": size, "capability": capability, "bf16": device.bf16}


def _models() -> Iterable[Row]:
    from trainlint.facts import cache, models

    kept = {model.id: model for model in cache.every()}
    for fetched in kept.values():
        yield {"name": fetched.id, "parameters": fetched.parameters, "type": fetched.config.get("model_type")}
    for name in (name for name in models.every() if name not in kept):
        model = models.find(name)
        assert model is not None
        yield {"name": name, "parameters": model.parameters, "type": model.config.get("model_type")}
