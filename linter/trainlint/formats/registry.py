"""Which formats there are, and which of them a document is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import import_module

from trainlint.documents import Document
from trainlint.formats.format import Format
from trainlint.formats.fragment import Fragment

BUILT_IN = (
    "accelerate",
    "axolotl",
    "azureml_job",
    "beaker",
    "cluster_job",
    "deepspeed",
    "docker_compose",
    "dstack",
    "github_workflow",
    "helm_values",
    "gpt_neox",
    "hf_trainer",
    "kubernetes",
    "lightning",
    "litgpt",
    "llamafactory",
    "llm_foundry",
    "makefile",
    "maxtext",
    "ms_swift",
    "mlx_lm",
    "model_config",
    "mosaicml",
    "nemo",
    "nemo_automodel",
    "openrlhf",
    "oumi",
    "oumi_job",
    "peft_adapter",
    "python_script",
    "ray_cluster",
    "ray_job",
    "shell_launcher",
    "skypilot",
    "torchtitan",
    "torchtune",
    "trl",
    "vertex_job",
    "trlx",
    "verl",
    "trainlint_run",
)
"""Modules of this package that hold a format, as `FORMAT`."""

ONLY = {"makefile": "text", "python_script": "python", "shell_launcher": "shell"}
"""Modules whose format has a syntax of its own; the others read data: YAML, JSON, TOML."""

THRESHOLD = 40
"""A document is left alone when no format is at least this sure."""


@lru_cache(maxsize=16)
def built_in(syntax: str | None = None) -> tuple[Format, ...]:
    """The formats that come with trainlint, or those that may read a syntax: no others are imported for it."""
    data = syntax not in ONLY.values()
    names = (name for name in BUILT_IN if syntax is None or ONLY.get(name) == (None if data else syntax))
    return tuple(import_module(f"trainlint.formats.{name}").FORMAT for name in names)


def recognise(document: Document, formats: Iterable[Format]) -> Iterator[tuple[Format, Fragment]]:
    """The fragments of a document: one per YAML document that is a training config, more where a launcher starts
    several trainings, none for anything else.
    """
    for root in document.roots or (None,):
        sure, best = 0, None
        for candidate in formats:
            score = candidate.recognise(document, root)
            if score > sure:
                sure, best = score, candidate
        if best is not None and sure >= THRESHOLD:
            fragment = best.read(document, root)
            yield from ((best, one) for one in (fragment, *fragment.others))
