from __future__ import annotations

import json

import pytest

from .runs import Folder, folder, value

__all__ = ["folder"]

CONFIG: dict[str, object] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 999,
    "max_position_embeddings": 256,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}


def run_of(model: str) -> str:
    return f"trainlint: run\nmodel: {model}\n"


def test_a_known_id(folder: Folder) -> None:
    folder.file("run.yaml", run_of("{id: gpt2}"))
    run = folder.run()
    assert value(run, "model.type") == "gpt2"
    assert value(run, "model.parameters") == 124_439_808
    assert value(run, "model.shape.layers") == 12
    assert value(run, "model.shape.positions") == 1024
    assert value(run, "model.head") == "causal-lm"
    layers = run.model.shape.layers
    assert layers is not None
    assert layers.origin == "derived"
    assert "gpt2" in layers.note


def test_a_folder_with_a_config(folder: Folder) -> None:
    folder.file("models/tiny/config.json", json.dumps(CONFIG))
    folder.file("models/tiny/model.safetensors.index.json", '{"metadata": {"total_size": 12345}}')
    for text in ("{id: models/tiny}", "{config: models/tiny}", "{config: models/tiny/config.json}", "models/tiny/"):
        folder.file("run.yaml", run_of(text))
        run = folder.run()
        assert value(run, "model.config") == CONFIG, text
        assert value(run, "model.shape.hidden") == 64
        assert value(run, "model.shape.kv_heads") == 2
        assert value(run, "model.shape.tied") is True
        assert value(run, "model.dtype") == "bfloat16"
        assert value(run, "model.checkpoint_bytes") == 12345
        assert value(run, "model.type") == "llama"


def test_a_folder_wins_over_a_known_name(folder: Folder) -> None:
    folder.file("gpt2/config.json", json.dumps(CONFIG))
    folder.file("run.yaml", run_of("gpt2"))
    assert value(folder.run(), "model.type") == "llama"


def test_names_are_relative_to_the_config_or_a_folder_above(folder: Folder) -> None:
    folder.file("models/tiny/config.json", json.dumps(CONFIG))
    folder.file("configs/deep/run.yaml", run_of("models/tiny"))
    assert value(folder.run(), "model.type") == "llama"
    folder.file("../outside/config.json", json.dumps(CONFIG))
    folder.file("configs/deep/run.yaml", run_of("outside"))
    assert value(folder.run(), "model.type") is None  # not above the repository


def test_what_is_written_wins_over_the_config(folder: Folder) -> None:
    folder.file("tiny/config.json", json.dumps(CONFIG))
    folder.file("run.yaml", run_of("{id: tiny, shape: {layers: 30}, head: classification}"))
    run = folder.run()
    assert value(run, "model.shape.layers") == 30
    assert value(run, "model.head") == "classification"
    assert value(run, "model.shape.hidden") == 64


def test_an_unknown_name_gives_at_most_its_size(folder: Folder) -> None:
    folder.file("run.yaml", run_of("someone/Nothing-13B-v2"))
    run = folder.run()
    parameters = run.model.parameters
    assert parameters is not None
    assert parameters.value == 13_000_000_000
    assert parameters.origin == "assumed"
    assert "13 B parameters, from the name `someone/Nothing-13B-v2`" in parameters.note
    assert run.model.config is None
    assert run.model.shape.layers is None
    folder.file("run.yaml", run_of("someone/nothing"))
    assert folder.run().model.parameters is None


@pytest.mark.parametrize(
    ("changes", "path", "expected"),
    [
        ({"architectures": ["LlamaForSequenceClassification"]}, "model.head", "classification"),
        ({"architectures": ["BertForMaskedLM"]}, "model.head", "masked-lm"),
        ({"architectures": ["GPT2LMHeadModel"]}, "model.head", "causal-lm"),
        ({"architectures": ["WhisperForConditionalGeneration"]}, "model.head", "speech-seq2seq"),
        ({"architectures": ["T5ForConditionalGeneration"]}, "model.head", "seq2seq"),
        ({"architectures": ["ThingModel"]}, "model.head", None),
        ({"architectures": []}, "model.head", None),
        ({"architectures": [3]}, "model.head", None),
        ({"torch_dtype": "float16"}, "model.dtype", "float16"),
        ({"torch_dtype": None, "dtype": "float32"}, "model.dtype", "float32"),
        ({"torch_dtype": "int4"}, "model.dtype", None),
        ({"quantization_config": {"quant_method": "gptq"}}, "model.quantized", "gptq"),
        ({"hidden_size": "sixty"}, "model.shape.hidden", None),
        ({"rope_scaling": {"type": "yarn", "factor": 4}}, "model.shape.rope_scaling", {"type": "yarn", "factor": 4}),
    ],
)
def test_what_a_config_says(folder: Folder, changes: dict[str, object], path: str, expected: object) -> None:
    folder.file("tiny/config.json", json.dumps({**CONFIG, **changes}))
    folder.file("run.yaml", run_of("tiny"))
    assert value(folder.run(), path) == expected


def test_a_model_that_holds_a_language_model(folder: Folder) -> None:
    config = {"model_type": "llava", "architectures": ["LlavaForConditionalGeneration"], "text_config": CONFIG}
    folder.file("tiny/config.json", json.dumps(config))
    folder.file("run.yaml", run_of("tiny"))
    run = folder.run()
    assert value(run, "model.shape.layers") == 3
    assert value(run, "model.type") == "llava"


@pytest.mark.parametrize("text", ["", "[]", "3", "{", '{"a":' * 5000, "\x00", '{"hidden_size": {}}'])
def test_broken_configs_say_nothing(folder: Folder, text: str) -> None:
    folder.file("tiny/config.json", text)
    folder.file("run.yaml", run_of("tiny"))
    run = folder.run("run.yaml")
    assert value(run, "model.shape.layers") is None
    assert value(run, "model.id") == "tiny"


def test_a_broken_index_says_nothing(folder: Folder) -> None:
    folder.file("tiny/config.json", json.dumps(CONFIG))
    folder.file("run.yaml", run_of("tiny"))
    for text in ("{", "[]", '{"metadata": 3}', '{"metadata": {"total_size": "big"}}', "[" * 5000):
        folder.file("tiny/model.safetensors.index.json", text)
        assert value(folder.run("run.yaml"), "model.checkpoint_bytes") is None


def test_a_config_beside_the_run(folder: Folder) -> None:
    folder.file("tiny/config.json", json.dumps(CONFIG))
    folder.file("run.yaml", run_of("tiny"))
    assert folder.members() == [("run.yaml", "tiny/config.json")]
