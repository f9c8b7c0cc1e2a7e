"""Models of the Hugging Face hub: from an id as people write it to shapes and exact parameter counts.

`facts/models.json` holds one entry a shape: the ids that have it, a `config` with the keys of the model's own
config.json, and its counts. An id is found as written, through an alias, as a copy in an organisation that republishes
others' models (with a quantization in its name), without regard to case, or by the repository's name alone (`by_name`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from trainlint.facts import store

# Organisations that publish copies and quantizations of others' models under the original name.
MIRRORS = frozenset(
    (
        "bartowski",
        "casperhansen",
        "hugging-quants",
        "lmstudio-community",
        "maziyarpanahi",
        "mlx-community",
        "neuralmagic",
        "nm-testing",
        "nousresearch",
        "nvidia",
        "quantfactory",
        "redhatai",
        "solidrust",
        "techxgenus",
        "thebloke",
        "unsloth",
    )
)
# Endings of a repository name that say how its weights are stored, and what they mean; taken off one after another.
ENDINGS = tuple(
    (re.compile(ending + "$"), meaning)
    for ending, meaning in (
        (r"-(?:unsloth-)?bnb-([48])bit", "bnb-{}bit"),
        (r"-gptq(?:[-_]int|[-_.]w)?([348])(?:bit)?(?:a16)?(?:[-_]\w+)?", "gptq-{}bit"),
        (r"-gptq(?:-\w+)?", "gptq"),
        (r"-awq(?:[-_](?:int4|4bit|w4a16))?", "awq-4bit"),
        (r"[-.](?:quantized[-.])?w(\d)a(?:16|8)", "int{}"),
        (r"-fp8(?:-[\w-]+)?", "fp8"),
        (r"-nvfp4", "nvfp4"),
        (r"-gguf", "gguf"),
        (r"-mlx(?:-([234568])bit)?", "mlx-{}bit"),
        (r"-([234568])bit(?:-dwq[\w-]*|-mlx)?", "mlx-{}bit"),
        (r"-(?:bf16|fp16|f16|16bit)", None),
    )
)


@dataclass(frozen=True)
class Model:
    """A model's shape and counts, exact where not None.

    `id`: the hub id the facts are of. `config`: as its config.json has it (model_type, architectures, hidden_size, …;
    keys not known are left out). `parameters`: all; `embedding`: the input embedding's; `experts`: in routed experts;
    `active`: used for a token; `non_text`: in vision or audio parts. `covers`: "text" when the count leaves those out.
    `positions`: tokens it was made for; `tied`: whether the output head is the input embedding.
    `quantized`: how the named copy's weights are stored (bnb-4bit, gptq, awq-4bit, fp8, gguf, mlx-4bit, …), else None.
    `by_name`: found by the name of the folder or repository alone, so it may be another model.
    """

    id: str
    config: Mapping[str, Any]
    parameters: int
    embedding: int | None
    experts: int | None
    active: int | None
    non_text: int | None
    covers: str
    positions: int | None
    tied: bool | None
    source: str
    quantized: str | None = None
    by_name: bool = False


@cache
def _entries() -> tuple[dict[str, dict[str, Any]], dict[str, str], dict[str, str]]:
    """Id to entry; lower-case id (or alias) to id; folded repository name to id, where only one id has it."""
    data = store.read("facts", "models")
    entries: dict[str, dict[str, Any]] = {}
    for entry in data["models"]:
        entries.update(dict.fromkeys((*entry["ids"], *entry.get("tuned", ())), entry))
    lower = {name.lower(): name for name in entries} | {alias.lower(): name for alias, name in data["aliases"].items()}
    by_name: dict[str, str] = {}
    for name in [*entries, *data["aliases"]]:
        by_name.setdefault(_fold(name), lower[name.lower()])
    return entries, lower, by_name


def _fold(name: str) -> str:
    """The repository's name without what copies drop or add: "Meta-Llama-3-8B" and "llama-2-7b-hf"."""
    return name.rsplit("/", 1)[-1].lower().removeprefix("meta-").removesuffix("-hf")


def _unquantized(name: str) -> tuple[str, str | None]:
    """The name without endings that say how the weights are stored, and what they say."""
    quantized = None
    stripped = True
    while stripped:
        stripped = False
        for ending, meaning in ENDINGS:
            if found := ending.search(name):
                name = name[: found.start()]
                bits = next((group for group in found.groups() if group), "")
                quantized = quantized or (meaning.format(bits).removesuffix("-bit") if meaning else None)
                stripped = True
    return name, quantized


def stored(model_id: str) -> str | None:
    """How the weights of a repository are stored, by its name alone (gptq-4bit, awq-4bit, …); None where it is silent.

    A bare `-4bit` says little in the name of an unknown model: MLX's are left out.
    """
    quantized = _unquantized(model_id.strip().rstrip("/").lower())[1]
    return None if quantized is None or quantized.startswith("mlx") else quantized


@cache
def find(model_id: str) -> Model | None:
    """The model that an id, alias, republished copy, or path of a folder names; None when none known."""
    entries, lower, by_name = _entries()
    wanted = model_id.strip().rstrip("/\\").replace("\\", "/").lower()
    if wanted in lower:
        return _model(entries, lower[wanted])
    name, quantized = _unquantized(wanted)
    if name in lower:
        return replace(_model(entries, lower[name]), quantized=quantized)
    found = by_name.get(_fold(name))
    if found is None:
        return None
    copy = name.count("/") == 1 and name.split("/")[0] in MIRRORS
    return replace(_model(entries, found), quantized=quantized, by_name=not copy)


def _model(entries: dict[str, dict[str, Any]], name: str) -> Model:
    entry = entries[name]
    config: dict[str, Any] = entry["config"]
    text: dict[str, Any] = config.get("text_config", config)
    keys = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_target_positions")
    positions = next((text[key] for key in keys if key in text), None)
    source = entry["source"]
    if name not in entry["ids"]:  # tuned from the entry's models: the same shape, but perhaps for other lengths
        config, positions = {k: v for k, v in config.items() if k not in keys[:1]}, None
        source = f"same shape as {entry['ids'][0]}, from which it was tuned; {source}"
    return Model(
        id=name,
        config=config,
        parameters=entry["parameters"],
        embedding=entry["embedding"],
        experts=entry.get("experts"),
        active=entry.get("active"),
        non_text=entry.get("non_text"),
        covers=entry.get("covers", "all"),
        positions=positions,
        tied=config.get("tie_word_embeddings"),
        source=source,
    )


@cache
def every() -> tuple[str, ...]:
    """All known ids, sorted."""
    return tuple(sorted(_entries()[0], key=str.lower))


def nearest(model_id: str, count: int = 3) -> tuple[str, ...]:
    """Known ids with a repository name like the given one, the likest first."""
    from difflib import get_close_matches

    _, _, by_name = _entries()
    name = _fold(_unquantized(model_id.lower())[0])
    return tuple(by_name[close] for close in get_close_matches(name, by_name, n=count, cutoff=0.6))


def smaller(model_id: str) -> tuple[Model, ...]:
    """Models that differ from one in the parameter count of their name alone, and have fewer; the largest first."""
    entries, _, _ = _entries()
    if model_id not in entries:
        return ()
    model = _model(entries, model_id)
    series = COUNT.sub("*", model_id.lower())
    if "*" not in series:
        return ()
    like = (_model(entries, name) for name in entries if COUNT.sub("*", name.lower()) == series)
    kind = model.config.get("model_type")
    found = [one for one in like if one.parameters < model.parameters and one.config.get("model_type") == kind]
    return tuple(sorted(found, key=lambda one: -one.parameters))


# "7B", "1.5b", "1_6b", "1b7", "350M"; not the 3B of "A3B" (active) or "E4B" (effective), not the 8x7B of a mixture.
COUNT = re.compile(r"(?<![a-z\d._])(\d+(?:[._]\d+)?)(b|m)(\d?)(?![a-z\d])")


def parameters_from_name(model_id: str) -> int | None:
    """The parameter count that a name like "Foo-13B-chat" claims: rounded, and only what the name says."""
    repository = model_id.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].lower()
    if re.search(r"\dx\d+(\.\d+)?b", repository):
        return None
    found = COUNT.search(repository)
    if found is None:
        return None
    number = float(found[1].replace("_", ".") + (f".{found[3]}" if found[3] else ""))
    return round(number * (10**9 if found[2] == "b" else 10**6))
