from __future__ import annotations

from pathlib import Path

import pytest

from trainlint.memory import MissingShape, Setup, UnknownArchitecture, estimate
from trainlint.memory.architecture import Architecture, find, folder, models
from trainlint.memory.errors import ArchitectureFault
from trainlint.memory.program import ModelProgram

FILES = sorted(path.stem for path in Path(folder()).glob("*.toml") if path.stem not in ("models", "heads"))
LLAMA = {
    "model_type": "llama",
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 688,
    "vocab_size": 8000,
}


@pytest.mark.parametrize("stem", FILES)
def test_every_file_loads_and_every_name_in_it_is_known(stem: str) -> None:
    found = find(stem)
    assert found is not None
    for head in found.heads.values():
        ModelProgram(found, head)


@pytest.mark.parametrize("stem", FILES)
def test_every_file_says_what_it_is(stem: str) -> None:
    assert (folder() / f"{stem}.toml").read_text().startswith("# ")


def test_further_model_types_lead_to_files() -> None:
    assert set(models().values()) <= set(FILES)
    assert not set(models()) & set(FILES)


def minimal(**changes: object) -> dict[str, object]:
    data: dict[str, object] = {
        "dims": {"hidden": "hidden_size", "vocab": "vocab_size", "layers": "num_hidden_layers"},
        "stacks": {
            "decoder": {
                "embed": "x = embedding('embed', vocab, hidden)",
                "block": {"mlp": "h = linear(x, 'fc', hidden, hidden)\nx = add(x, h)"},
            }
        },
        "head": {"kind": "causal-lm", "ops": "l = head(x, 'lm_head', hidden, vocab)\nloss = causal_loss(l)"},
    }
    return {**data, **changes}


def test_a_minimal_architecture_is_accepted() -> None:
    found = Architecture("tiny", minimal())
    ModelProgram(found, found.head)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("x = linear(x, 'fc', hidden, hidden, slope=1)", "no `slope`"),
        ("x = linear(x, 'fc', out=hidden)", "no `width`"),
    ],
)
def test_a_keyword_that_a_kind_lacks_is_refused(line: str, said: str) -> None:
    stacks = {"decoder": {"embed": "x = embedding('embed', vocab, hidden)", "block": {"mlp": line}}}
    with pytest.raises(ArchitectureFault, match=said):
        ModelProgram(found := Architecture("tiny", minimal(stacks=stacks)), found.head)


def test_keywords_leave_the_defaults_between_them() -> None:
    block = {"mlp": "x = layernorm(x, 'norm', hidden, affine=0)"}
    stacks = {"decoder": {"embed": "x = embedding('embed', vocab, hidden)", "block": block}}
    program = ModelProgram(found := Architecture("tiny", minimal(stacks=stacks)), found.head).stacks[0].bodies[0]
    values = program.sizes({"hidden": 64})
    ((_, _, arguments, _, _),) = program.steps
    assert [values.get(part, part) for part in arguments] == ["x", "norm", 64, 1, 0]


@pytest.mark.parametrize(
    ("block", "fault"),
    [
        ("h = convolve(x)", "no kind `convolve`"),
        ("x = linear(x, 'fc', hidden, width)", "`width` is neither a value nor a size"),
        ("x = add(x, y)", "`y` is neither a value nor a size"),
        ("x = linear(x, 'fc', hidden, [h for h in x])", "holds a"),
        ("x = ", "does not parse"),
        ("import os", "is no `names = kind"),
    ],
)
def test_faults_of_a_block_are_named(block: str, fault: str) -> None:
    stacks = {"decoder": {"embed": "x = embedding('embed', vocab, hidden)", "block": {"mlp": block}}}
    with pytest.raises(ArchitectureFault, match=fault.replace("(", r"\(")):
        ModelProgram(found := Architecture("tiny", minimal(stacks=stacks)), found.head)


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(ArchitectureFault, match="unknown `layer`"):
        Architecture("tiny", minimal(layer=3))


def test_missing_sizes_are_named() -> None:
    config = {key: value for key, value in LLAMA.items() if key not in ("hidden_size", "vocab_size")}
    with pytest.raises(MissingShape) as error:
        estimate(config, Setup())
    assert set(error.value.names) >= {"hidden_size", "vocab_size"}


@pytest.mark.parametrize("model_type", ["", "unheard-of", "../llama", "models", "heads"])
def test_a_type_without_shape_is_unknown(model_type: str) -> None:
    with pytest.raises(UnknownArchitecture):
        estimate({"model_type": model_type}, Setup())


def test_an_unknown_family_is_taken_for_the_nearest_and_says_so() -> None:
    known, other = estimate(LLAMA, Setup()), estimate({**LLAMA, "model_type": "llamoid"}, Setup())
    assert other.allocated == known.allocated
    assert other.low < known.low
    assert known.high < other.high
    assert "llama-like" in other.assumptions[0]


def test_the_text_part_of_a_multimodal_config_is_counted() -> None:
    found = estimate({"model_type": "seeing", "text_config": LLAMA, "vision_config": {}}, Setup())
    assert found.allocated == estimate(LLAMA, Setup()).allocated
    assert "only the text model" in found.assumptions[0]
