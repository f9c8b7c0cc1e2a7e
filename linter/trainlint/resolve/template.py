"""The chat template of a run, where its text is at hand: in the config, a file it names, or the model's folder."""

from __future__ import annotations

import json
from pathlib import Path

from trainlint.documents import Scalar
from trainlint.formats import Draft
from trainlint.resolve.join import find_file
from trainlint.run import Value

FILES = ("chat_template.jinja", "tokenizer_config.json")
ASKS = "assistant_only_loss"
"""The option for which it matters what the template holds; without it no file is opened."""
KEYS = ("chat_template_path", "chat_template")


def add_template(draft: Draft, origin: Path) -> None:
    """Fill `model.chat_template`; a template beside the config counts where nothing names another."""
    root = draft.fragments[0]
    if ASKS not in root.keys:
        return
    for key in KEYS:
        entry = root.entry(key)
        node = entry.value if entry is not None else None
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            continue
        text = node.value if "{%" in node.value or "{{" in node.value else _read(find_file(origin, node.value, FILES))
        if text is not None:
            draft.values["model.chat_template"] = Value(text, "written", key, node.place, node.value[:40])
        return
    name = draft.get("model.id")
    path = find_file(origin, name, FILES) if isinstance(name, str) else None
    beside = origin.resolve().parent / FILES[0]
    path = path if path is not None else beside if beside.is_file() else None
    text = _read(path)
    if path is not None and text is not None:
        draft.derive("model.chat_template", text, path.name)


def _read(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        text = path.read_text("utf-8")
        if path.suffix != ".json":
            return text
        template = json.loads(text).get("chat_template")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return template if isinstance(template, str) else None
