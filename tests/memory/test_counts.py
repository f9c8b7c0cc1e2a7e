from __future__ import annotations

from typing import Any

import pytest

from trainlint.memory import linear_names, parameters


def llama(hidden: int, layers: int, heads: int, kv_heads: int, ffn: int, vocab: int, tied: bool, **more: Any) -> Any:
    return {
        "model_type": "llama",
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": ffn,
        "vocab_size": vocab,
        "tie_word_embeddings": tied,
        **more,
    }


PUBLIC = {
    "Llama-2-7b": (llama(4096, 32, 32, 32, 11008, 32000, False), 6_738_415_616),
    "Llama-3.1-8B": (llama(4096, 32, 32, 8, 14336, 128256, False), 8_030_261_248),
    "Llama-3.2-1B": (llama(2048, 16, 32, 8, 8192, 128256, True, head_dim=64), 1_235_814_400),
    "Mistral-7B-v0.1": (llama(4096, 32, 32, 8, 14336, 32000, False, model_type="mistral"), 7_241_732_096),
    "Qwen2.5-7B": (llama(3584, 28, 28, 4, 18944, 152064, False, model_type="qwen2"), 7_615_616_512),
    "Qwen2.5-0.5B": (llama(896, 24, 14, 2, 4864, 151936, True, model_type="qwen2"), 494_032_768),
    "Qwen3-8B": (llama(4096, 36, 32, 8, 12288, 151936, False, model_type="qwen3", head_dim=128), 8_190_735_360),
    "gemma-2-2b": (llama(2304, 26, 8, 4, 9216, 256000, True, model_type="gemma2", head_dim=256), 2_614_341_888),
    "Phi-3-mini": (llama(3072, 32, 32, 32, 8192, 32064, False, model_type="phi3"), 3_821_079_552),
    "Mixtral-8x7B": (
        llama(4096, 32, 32, 8, 14336, 32000, False, model_type="mixtral", num_local_experts=8, num_experts_per_tok=2),
        46_702_792_704,
    ),
    "Qwen1.5-MoE-A2.7B": (
        llama(
            2048, 24, 16, 16, 5632, 151936, False, model_type="qwen2_moe", moe_intermediate_size=1408,
            shared_expert_intermediate_size=5632, num_experts=60, num_experts_per_tok=4,
        ),
        14_315_784_192,
    ),
    "gpt2": ({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257}, 124_439_808),
    "falcon-7b": (
        {
            "model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
            "vocab_size": 65024,
        },
        6_921_720_704,
    ),
    "falcon-40b": (
        {
            "model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60, "num_attention_heads": 128,
            "num_kv_heads": 8, "vocab_size": 65024, "new_decoder_architecture": True,
        },
        41_303_293_952,
    ),
    "c4ai-command-r-v01": (
        llama(8192, 40, 64, 64, 22528, 256000, True, model_type="cohere"),
        34_980_831_232,
    ),
    "glm-4-9b": (llama(4096, 40, 32, 2, 13696, 151552, False, model_type="glm", head_dim=128), 9_399_951_360),
    "whisper-small": (
        {
            "model_type": "whisper", "vocab_size": 51865, "d_model": 768, "encoder_layers": 12, "decoder_layers": 12,
            "encoder_attention_heads": 12, "decoder_attention_heads": 12, "encoder_ffn_dim": 3072,
            "decoder_ffn_dim": 3072,
        },
        241_734_912,
    ),
}  # fmt: skip
"""Configs of public checkpoints, and how many parameters their model cards and index files add up to."""


@pytest.mark.parametrize("name", PUBLIC)
def test_public_models_have_their_known_size(name: str) -> None:
    config, total = PUBLIC[name]
    counts = parameters(config)
    assert counts.total == total
    assert sum(counts.kinds.values()) == total


def test_a_tied_head_counts_once() -> None:
    tied, free = (parameters(llama(512, 2, 8, 8, 1024, 1000, tied)) for tied in (True, False))
    assert free.total - tied.total == 512 * 1000
    assert "head" not in tied.kinds


def test_linear_names_are_those_of_the_modules() -> None:
    assert linear_names(PUBLIC["Llama-3.1-8B"][0]) == (
        "q_proj",
        "k_proj",
        "v_proj",
        "o_proj",
        "gate_proj",
        "up_proj",
        "down_proj",
    )
    assert set(linear_names(PUBLIC["gpt2"][0])) == {"c_attn", "c_proj", "c_fc"}
    assert "query_key_value" in linear_names({**PUBLIC["falcon-7b"][0]})
    assert "qkv_proj" in linear_names(PUBLIC["Phi-3-mini"][0])
    assert "query" in linear_names({"model_type": "bert"})
