import json
import re

import pytest

from trainlint.facts import models, store

COUNTS = {
    "meta-llama/Llama-3.1-8B": 8_030_261_248,
    "meta-llama/Llama-2-7b-hf": 6_738_415_616,
    "meta-llama/Llama-3.2-1B": 1_235_814_400,
    "mistralai/Mistral-7B-v0.1": 7_241_732_096,
    "mistralai/Mixtral-8x7B-v0.1": 46_702_792_704,
    "Qwen/Qwen2.5-0.5B": 494_032_768,
    "Qwen/Qwen2.5-7B-Instruct": 7_615_616_512,
    "Qwen/Qwen3-30B-A3B": 30_532_122_624,
    "google/gemma-3-4b-it": 4_300_079_472,
    "microsoft/phi-2": 2_779_683_840,
    "openai-community/gpt2": 124_439_808,
    "google-bert/bert-base-uncased": 109_482_240,
    "openai/gpt-oss-20b": 20_914_757_184,
    "deepseek-ai/DeepSeek-R1": 671_026_404_352,
}


@pytest.mark.parametrize(("name", "count"), COUNTS.items())
def test_counts_are_the_published_ones(name, count):
    assert models.find(name).parameters == count


@pytest.mark.parametrize(
    ("written", "name", "quantized", "by_name"),
    [
        ("gpt2", "openai-community/gpt2", None, False),
        ("meta-llama/Meta-Llama-3.1-8B", "meta-llama/Llama-3.1-8B", None, False),
        ("qwen/qwen2.5-0.5b", "Qwen/Qwen2.5-0.5B", None, False),
        ("unsloth/llama-3-8b-bnb-4bit", "meta-llama/Meta-Llama-3-8B", "bnb-4bit", False),
        ("unsloth/Llama-3.2-1B-Instruct-unsloth-bnb-4bit", "meta-llama/Llama-3.2-1B-Instruct", "bnb-4bit", False),
        ("TheBloke/Llama-2-7B-GPTQ", "meta-llama/Llama-2-7b-hf", "gptq", False),
        ("TheBloke/Mistral-7B-Instruct-v0.2-AWQ", "mistralai/Mistral-7B-Instruct-v0.2", "awq-4bit", False),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "Qwen/Qwen2.5-7B-Instruct", "gptq-4bit", False),
        ("neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8", "meta-llama/Llama-3.1-8B-Instruct", "fp8", False),
        ("bartowski/Qwen2.5-7B-Instruct-GGUF", "Qwen/Qwen2.5-7B-Instruct", "gguf", False),
        ("mlx-community/Qwen2.5-7B-Instruct-4bit", "Qwen/Qwen2.5-7B-Instruct", "mlx-4bit", False),
        ("/models/Qwen2-7B-Instruct", "Qwen/Qwen2-7B-Instruct", None, True),
        ("./Qwen2.5-7B", "Qwen/Qwen2.5-7B", None, True),
        ("C:\\models\\Qwen2.5-7B", "Qwen/Qwen2.5-7B", None, True),
        ("someone/Qwen2.5-7B", "Qwen/Qwen2.5-7B", None, True),
    ],
)
def test_ids_as_people_write_them_are_found(written, name, quantized, by_name):
    found = models.find(written)
    assert (found.id, found.quantized, found.by_name) == (name, quantized, by_name)


@pytest.mark.parametrize("written", ["", "/", "foo/bar", "Qwen/Qwen2.5-7B-Turbo"])
def test_what_names_no_model_is_not_found(written):
    assert models.find(written) is None


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("Foo-13B-chat", 13 * 10**9),
        ("opt-350m", 350 * 10**6),
        ("pythia-1.4b", 14 * 10**8),
        ("stablelm-2-1_6b", 16 * 10**8),
        ("bloom-1b7", 17 * 10**8),
        ("Qwen3-30B-A3B", 30 * 10**9),
        ("org-7b/thing", None),
        ("Mixtral-8x7B", None),
        ("Qwen1.5-MoE-A2.7B", None),
        ("foo-4bit", None),
        ("Phi-3-mini-4k", None),
    ],
)
def test_a_name_may_say_how_many_parameters(name, count):
    assert models.parameters_from_name(name) == count


def test_configs_have_the_keys_of_the_models_own_config_json():
    assert models.find("gpt2").config["n_embd"] == 768
    assert models.find("mistralai/Mixtral-8x7B-v0.1").config["num_local_experts"] == 8
    assert models.find("Qwen/Qwen3-30B-A3B").config["num_experts"] == 128
    assert models.find("google/gemma-3-4b-it").config["text_config"]["hidden_size"] == 2560
    assert models.find("google-t5/t5-base").config["d_model"] == 768


def test_a_tuned_model_has_the_shape_but_not_the_length_of_its_origin():
    tuned = models.find("Qwen/Qwen2-7B-Instruct")
    assert tuned.parameters == models.find("Qwen/Qwen2-7B").parameters
    assert tuned.positions is None
    assert "max_position_embeddings" not in tuned.config


def test_entries_agree_with_themselves():
    data = store.read("facts", "models")
    for entry in data["models"]:
        config = entry["config"]
        assert entry["source"]
        assert config["model_type"]
        assert len(config["architectures"]) == 1
        assert entry.get("experts", 0) + entry.get("non_text", 0) < entry["parameters"]
        assert 0 <= entry.get("active", 0) <= entry["parameters"]
        if entry["embedding"] is not None:
            text = config.get("text_config", config)
            names = ("embedding_size", "word_embed_proj_dim", "hidden_size", "n_embd", "d_model", "dim")
            width = next(text[name] for name in names if name in text)
            rows = text.get("vocab_size") or text["padded_vocab_size"]
            assert 0 < entry["embedding"] == rows * width < entry["parameters"], entry["ids"]


def test_ids_are_sorted_and_aliases_point_to_known_models():
    data = store.read("facts", "models")
    first = [entry["ids"][0].lower() for entry in data["models"]]
    assert first == sorted(first)
    names = [name for entry in data["models"] for name in (*entry["ids"], *entry.get("tuned", ()))]
    assert len(names) == len(set(names))
    assert set(data["aliases"].values()) <= set(names)
    assert not set(data["aliases"]) & set(names)
    assert list(data["aliases"]) == sorted(data["aliases"], key=str.lower)


def test_the_nearest_ids_are_offered():
    assert "meta-llama/Llama-3.1-8B" in models.nearest("meta-llama/Llama-3.1-7B")


def test_sources_name_what_anybody_can_read():
    assert not re.search(r"file id|find_string|/work/|/tmp/", json.dumps(store.read("facts", "models")))
