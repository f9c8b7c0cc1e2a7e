"""The chat template of another family of models, or a chat template on a model that never saw its marks."""

import re
from collections.abc import Iterator

from trainlint.api import Found, RunView, rule, said

FAMILIES = {
    "llama2": r"llama-?2|llama2",
    "llama3": r"llama-?3",
    "llama4": r"llama-?4",
    "qwen": r"qwen|qwq",
    "mistral": r"mistral|mixtral|ministral|zephyr",
    "gemma": r"gemma",
    "glm": r"glm",
    "baichuan": r"baichuan",
    "yi": r"(^|[/_-])yi-",
    "deepseek": r"deepseek",
    "phi": r"(^|[/_-])phi-?[1-4]",
    "internlm": r"internlm|intern-?[s2v]",
    "falcon": r"falcon",
    "gpt-oss": r"gpt-oss",
}
TEMPLATES = {
    "llama2": r"llama2(_zh)?",
    "llama3": r"llama3",
    "llama4": r"llama4",
    "qwen": r"qwen(2|3|_25)?(_nothink|_vl|_omni|_audio|_5_nothink)?|qwen[23]_?5?_?\w*",
    "mistral": r"mistral(_small|_v\w+)?|ministral3?",
    "gemma": r"gemma[234]?n?(_it)?",
    "glm": r"(chat)?glm[234]\w*",
    "baichuan": r"baichuan2?",
    "yi": r"yi(_vl)?",
    "deepseek": r"deepseek\w*",
    "phi": r"phi\w*",
    "internlm": r"intern\w*",
    "falcon": r"falcon\w*",
    "gpt-oss": r"gpt(_oss)?",
}
THINKING = {"qwen3": r"qwen3-.*instruct-2507", "qwen3_nothink": r"qwen3-.*thinking-2507"}
"""Templates with and without empty thinking, and models that are made for the other."""
BASES = re.compile(r"meta-llama/(meta-)?llama-3(\.\d)?-\d+b|google/gemma-(2-|3-)?\d+b(-pt)?")
"""Checkpoints whose marks were never trained, by the names under which their makers publish them."""


@rule(severity="warning", needs=("model.id",))
def check(view: RunView) -> Iterator[Found]:
    form = view.root.framework
    key = {"llamafactory": "template", "axolotl": "chat_template"}.get(form, "")
    entry, model = view.root.entry(key) if key else None, view.run.model.id
    value = getattr(entry.value, "value", None) if entry is not None else None
    if entry is None or model is None or not isinstance(value, str):
        return
    name = model.value.lower()
    families = {family for family, pattern in FAMILIES.items() if re.search(pattern, name)}
    meant = next((family for family, pattern in TEMPLATES.items() if re.fullmatch(pattern, value)), None)
    if meant is None or not families or "distill" in name:
        return
    if meant not in families:
        yield Found(
            at=entry.value,
            message=f"`{said(entry)}` has the marks of another family than `{model.value}`",
            help=f"set `{key}` to the template of {' or '.join(sorted(families))}",
            notes=[(model, "the model")],
        )
    elif value in THINKING and re.search(THINKING[value], name):
        yield Found(
            at=entry.value,
            message=f"`{said(entry)}` and `{model.value}` do not agree on whether answers begin with thinking",
            help=f"set `{key}: {'qwen3_nothink' if value == 'qwen3' else 'qwen3'}`",
            notes=[(model, "the model")],
            severity="info",
        )
    elif form == "llamafactory" and BASES.fullmatch(name):
        yield Found(
            at=entry.value,
            message=f"`{said(entry)}` uses marks that `{model.value}`, a base model, was never trained on",
            help=f"start from the instruct model, or set `{key}: default`",
            notes=[(model, "the model")],
            severity="info",
        )
