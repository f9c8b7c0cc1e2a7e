"""An access token stands in the file."""

import re
from collections.abc import Iterator

from trainlint.api import FileView, Found, Place, rule

TOKENS = (
    ("hf_", "a Hugging Face token", "HF_TOKEN", re.compile(r"\bhf_[A-Za-z0-9]{30,40}\b")),
    ("sk-", "an OpenAI key", "OPENAI_API_KEY", re.compile(r"\bsk-(?:proj-)?[A-Za-z0-9_-]{32,}\b")),
    ("ghp_", "a GitHub token", "GITHUB_TOKEN", re.compile(r"\bghp_[A-Za-z0-9]{36}\b")),
    ("AKIA", "an AWS key", "AWS_ACCESS_KEY_ID", re.compile(r"\bAKIA[0-9A-Z]{16}\b")),
    ("", "a Weights & Biases key", "WANDB_API_KEY", re.compile(r"\b[0-9a-f]{40}\b")),
)
"""What a token begins with, whose it is, the variable to set instead, and its shape."""
NAMED = re.compile(r"(wandb\w*|\b(api_)?key)[\"']?\s*[:=]\s*[\"']?$", re.IGNORECASE)
"""What stands before forty hexadecimal digits that are a key; others are commits and digests."""
VARIED = 10
"""Fewer different characters than these are a placeholder: `hf_xxxxxxxx…`."""


@rule(severity="error", on="file")
def check(view: FileView) -> Iterator[Found]:
    text = view.document.text
    for begin, name, variable, shape in TOKENS:
        if begin not in text or not (begin or "wandb" in text.lower()):
            continue
        for found in shape.finditer(text):
            token, at = found[0], found.start()
            if len(set(token.rpartition("_")[2].lower())) < VARIED or "example" in token.lower():
                continue
            if not begin and NAMED.search(text, max(0, at - 40), at) is None:
                continue
            line_start = text.rfind("\n", 0, at) + 1
            line, column = text.count("\n", 0, at) + 1, at - line_start + 1
            yield Found(
                at=Place(view.document.file, line, column, line, column + len(token)),
                message=f"{name} (`{token[:4]}…`) for everybody who reads this file",
                help=f"revoke it, and set `{variable}` where the job runs",
            )
