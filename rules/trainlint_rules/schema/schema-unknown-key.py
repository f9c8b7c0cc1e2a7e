"""A key that the framework has in no version, one letter away from one that it has."""

from collections import Counter
from collections.abc import Iterator
from functools import cache

from trainlint.api import FileView, Found, history, rename_key, rule

SECTIONS: dict[str, tuple[tuple[str, str, tuple[str, ...]], ...]] = {
    "hf-trainer": (("", "trl", ()), ("", "transformers", ("TrainingArguments", "Seq2SeqTrainingArguments"))),
    "trl": (("", "trl", ()),),
    "llamafactory": (("", "llamafactory", ()), ("", "transformers", ("Seq2SeqTrainingArguments",))),
    "axolotl": (("", "axolotl", ()),),
    "mlx-lm": (("", "mlx-lm", ()),),
    "accelerate": (
        ("", "accelerate", ("BaseConfig", "ClusterConfig", "SageMakerConfig", "cli:accelerate launch")),
        ("fsdp_config.", "accelerate", ("fsdp_config", "cli:accelerate launch")),
        ("deepspeed_config.", "accelerate", ("deepspeed_config", "cli:accelerate launch")),
    ),
    "deepspeed": (("", "deepspeed", ("",)), ("zero_optimization.", "deepspeed", ("zero_optimization",))),
}
"""Per format: where its keys stand (a dotted prefix), the framework, and its sections (none: all of them)."""
REFUSED = {"llamafactory": ("",), "accelerate": ("",), "deepspeed": ("zero_optimization.",)}
"""Prefixes under which the loader raises for an unknown key; elsewhere it does nothing, or is a script's."""


@rule(severity="warning", on="file", formats=tuple(SECTIONS))
def check(view: FileView) -> Iterator[Found]:
    fragment = view.fragment
    for prefix in dict.fromkeys(prefix for prefix, _, _ in SECTIONS[fragment.format]):
        known = _names(fragment.format, prefix)
        for dotted, entry in fragment.keys.items():
            name = dotted.removeprefix(prefix)
            if not dotted.startswith(prefix) or "." in name or "[" in name or name in known or len(name) < 4:
                continue
            close = _close(name, known)
            if close is None or prefix + close in fragment.keys:
                continue
            refused = prefix in REFUSED.get(fragment.format, ())
            yield Found(
                at=entry.key,
                message=f"no key is named `{dotted}`, did you mean `{close}`"
                + (": the loader refuses it" if refused else ""),
                help=f"write `{close}`",
                fix=rename_key(entry, close, "unsafe"),
                severity="error" if refused else "warning",
            )


@cache
def _names(format_name: str, prefix: str) -> frozenset[str]:
    names: set[str] = set()
    for where, framework, sections in SECTIONS[format_name]:
        if where == prefix:
            known = history.framework(framework)
            for section in sections or known.sections:
                names.update(known.section(section))
    return frozenset(names)


def _close(name: str, known: frozenset[str]) -> str | None:
    """The key that is one letter more, less, other or two letters swapped away."""
    letters = Counter(name)
    for other in sorted(known):
        if abs(len(other) - len(name)) <= 1:
            counted = Counter(other)
            if (letters - counted).total() <= 1 and (counted - letters).total() <= 1 and _one_slip(name, other):
                return other
    return None


def _one_slip(left: str, right: str) -> bool:
    left, right = sorted((left, right), key=len)
    at = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), len(left))
    if len(left) < len(right):
        return left[at:] == right[at + 1 :]
    swapped = left[at + 1 : at + 2] + left[at : at + 1] + left[at + 2 :]
    return left[at + 1 :] == right[at + 1 :] or swapped == right[at:]
