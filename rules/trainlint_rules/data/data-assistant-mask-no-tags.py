"""Loss on the assistant's words alone, and a chat template that does not mark them."""

import re
from collections.abc import Iterator

from trainlint.api import Found, RunView, rule, said, since

MARKS = re.compile(r"\{%-?\s*generation\s*-?%\}")
STOCK = (
    (re.compile(r"llama-?3[.\d]*-.*instruct"), "1.1"),
    (re.compile(r"qwen2\.5-.*instruct"), "1.1"),
    (re.compile(r"qwen3-(?!.*(base|vl|2507|coder|next|embedding|reranker))"), "1.1"),
    (re.compile(r"gpt-oss"), "1.1"),
    (re.compile(r"gemma-[23]-.*-it"), "1.4"),
)
"""Models whose own template has no marks, and the TRL that brings one which has (chat_templates/*_training.jinja)."""


@rule(severity="error", formats=("trl", "hf-trainer", "python-script", "shell-launcher"))
def check(view: RunView) -> Iterator[Found]:
    entry = view.root.entry("assistant_only_loss")
    if entry is None or getattr(entry.value, "value", None) not in (True, "true", "True"):
        return
    run, template, model = view.run, view.run.model.chat_template, view.run.model.id
    name = model.value.rpartition("/")[2].lower() if model is not None else ""
    brought = next((release for pattern, release in STOCK if pattern.search(name)), None)
    patched = None if brought is None else since(run.versions, "trl", brought)
    if template is not None and not MARKS.search(template.value):
        yield Found(
            at=entry.value,
            message=f"`{said(entry)}`, and the chat template ({template.note or template.key}) has no "
            "`{% generation %}` block: no word is marked as the assistant's",
            help="put `{% generation %}` and `{% endgeneration %}` around the assistant's words",
            notes=[(template, "the template")],
            severity="warning" if patched is not False and brought else None,
        )
    elif template is None and brought is not None and not patched:
        yield Found(
            at=entry.value,
            message=f"`{said(entry)}`, and the template of `{model.value if model else name}` has no "
            f"`{{% generation %}}` block: TRL has one of its own from {brought} on",
            help=f"pin `trl>={brought}`, or give a chat template with the block",
            notes=[(run.versions.get("trl"), "the release"), (model, "the model")],
            severity=None if patched is False else "info",
        )
