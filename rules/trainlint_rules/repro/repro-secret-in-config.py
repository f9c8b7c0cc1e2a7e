"""An access token stands in the file."""

import re
from bisect import bisect_right
from collections.abc import Iterator

from trainlint.api import FileView, Found, Place, rule

TOKENS = re.compile(
    r"(?P<hf>\bhf_[A-Za-z0-9]{30,40}\b)|(?P<openai>\bsk-(?:proj-)?[A-Za-z0-9_-]{32,}\b)|(?P<github>\bgh[pousr]_[A-Za-z0-9]{36}\b)"
    r"|(?P<aws>\bAKIA[0-9A-Z]{16}\b)"
    r"|(?i:wandb[\w.]*(?:key|token)?|\b(?:api_)?key|login\(\s*key)[\"']?\s*[:=]\s*[\"']?(?P<wandb>[0-9a-f]{40})\b"
)
NAMES = {
    "hf": "a Hugging Face token",
    "openai": "an OpenAI key",
    "github": "a GitHub token",
    "aws": "an AWS key",
    "wandb": "a Weights & Biases key",
}
VARIABLES = {"hf": "HF_TOKEN", "wandb": "WANDB_API_KEY", "openai": "OPENAI_API_KEY", "github": "GITHUB_TOKEN"}
VARIED = 10
"""Fewer different characters than these are a placeholder: `hf_xxxxxxxx…`."""


@rule(severity="error", on="file")
def check(view: FileView) -> Iterator[Found]:
    text = view.document.text
    if not text:
        return
    starts: list[int] = []
    for found in TOKENS.finditer(text):
        kind = found.lastgroup or ""
        token, at = found[kind], found.start(kind)
        if len(set(token.rpartition("_")[2].lower())) < VARIED or "example" in token.lower():
            continue
        starts = starts or [0, *(line.end() for line in re.finditer("\n", text))]
        line = bisect_right(starts, at)
        column = at - starts[line - 1] + 1
        yield Found(
            at=Place(view.document.file, line, column, line, column + len(token)),
            message=f"{NAMES[kind]} (`{token[:4]}…`) for everybody who reads this file",
            help=f"revoke it, and set `{VARIABLES.get(kind, 'a variable of the environment')}` where the job runs",
        )
