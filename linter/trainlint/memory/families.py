"""Which architecture a config belongs to; where none is known, the general block that it is most like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainlint.memory.architecture import Architecture, find
from trainlint.memory.errors import UnknownArchitecture
from trainlint.memory.setup import Setup

Config = Mapping[str, object]

NEAREST = (
    ("mixtral", ("num_local_experts", "num_experts_per_tok", "num_hidden_layers")),
    ("qwen3_moe", ("num_experts", "num_experts_per_tok", "moe_intermediate_size", "num_hidden_layers")),
    ("bart", ("encoder_layers", "decoder_layers", "d_model", "encoder_ffn_dim")),
    ("t5", ("d_model", "d_kv", "d_ff", "num_layers")),
    ("vit", ("image_size", "patch_size", "hidden_size", "intermediate_size")),
    ("bert", ("type_vocab_size", "hidden_size", "num_hidden_layers", "intermediate_size")),
    ("llama", ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size")),
    ("gpt2", ("n_embd", "n_layer", "n_head", "vocab_size")),
)
"""General blocks, and the config keys that speak for each; the first whose keys are all there is taken."""

TEXT = ("text_config", "llm_config", "language_config", "thinker_config")
"""Where multimodal configs keep their language model's."""

FALLBACK_SPREAD = 0.15
"""How far a general block may be off, as a fraction: parallel blocks, further norms, masks."""


@dataclass(frozen=True)
class Family:
    """An architecture for a config, and what was assumed to find it."""

    architecture: Architecture
    config: Config
    assumptions: tuple[str, ...] = ()
    spread: float = 0.0


def family(config: Config) -> Family:
    """The family of a config. A multimodal config's text part stands for the whole, which is said."""
    model_type = str(config.get("model_type", ""))
    found = find(model_type)
    if found is not None:
        return Family(found, config)
    text = next((config[key] for key in TEXT if isinstance(config.get(key), Mapping)), None)
    if isinstance(text, Mapping):
        inner = family({"tie_word_embeddings": config.get("tie_word_embeddings"), **text})
        said = f"only the text model of `{model_type}` is counted"
        return Family(inner.architecture, inner.config, (*inner.assumptions, said), max(inner.spread, FALLBACK_SPREAD))
    for name, keys in NEAREST:
        if all(config.get(key) is not None for key in keys):
            nearest = find(name)
            if nearest is not None:
                said = f"no architecture file for model type `{model_type}`: taken for a {name}-like block"
                return Family(nearest, config, (said,), FALLBACK_SPREAD)
    raise UnknownArchitecture(model_type)


GROUPS = {"positions": "embedding", "frozen": "embedding", "bias": "norm", "other": "norm", "router": "experts"}


@dataclass(frozen=True)
class Counts:
    """How many parameters a model has, and of which kinds: embedding, linear, head, norm (with biases), experts."""

    total: int
    kinds: Mapping[str, int]


def parameters(config: Config) -> Counts:
    """The model's parameters, exactly; a tied head counts once, as embedding."""
    from trainlint.memory.walk import Walk

    source = family(config)
    walk = Walk(source.architecture, source.config, Setup(weights="bfloat16", length=8, micro_batch=1))
    walk.tape.recording = False
    walk.forward()
    kinds: dict[str, int] = {}
    for parameter in walk.parameters.values():
        kind = GROUPS.get(parameter.kind, parameter.kind)
        kinds[kind] = kinds.get(kind, 0) + parameter.elements * parameter.copies
    return Counts(sum(kinds.values()), kinds)


def _linears(architecture: Architecture) -> Iterator[str]:
    names = {"linear": (1,), "gated_linear": (1, 2)}
    for stack in architecture.stacks:
        for line in (line for body in stack.bodies() for line in body):
            for index in names.get(line.kind, ()):
                yield str(line.arguments[index].value({}))


def linear_names(config: Config) -> tuple[str, ...]:
    """Names of the linear layers in a model's blocks that an adapter can target, as their modules' last names.

    Empty where the model is only taken for its nearest: another family names its modules its own way.
    """
    try:
        found = family(config)
    except UnknownArchitecture:
        return ()
    if found.assumptions:
        return ()
    return tuple(dict.fromkeys(name.rpartition(".")[2] for name in _linears(found.architecture)))
