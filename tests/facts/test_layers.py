"""Layer classes: by model type, and back."""

from trainlint.facts import layers


def test_a_model_type_has_its_layers() -> None:
    assert layers.find("llama") == ("LlamaDecoderLayer",)
    assert layers.find("bart") == ("BartEncoderLayer", "BartDecoderLayer")


def test_an_unknown_model_type_has_none() -> None:
    assert layers.find("llava") is None


def test_a_layer_belongs_to_a_model_type() -> None:
    assert layers.owner("BertLayer") == "bert"
    assert layers.owner("LLaMADecoderLayer") is None
