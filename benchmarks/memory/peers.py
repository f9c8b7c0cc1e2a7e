"""What other estimators say: JSON lines of cases in, `{"name", "peer": bytes or null, …}` a line out.

Runs in an interpreter of its own, where accelerate, transformers, deepspeed, fitcheck-llm, torch-preflight and
llm-analysis are installed as far as they can be; one that is not there says nothing. Each is asked through its own
Python interface with the model's config, so that no hub is needed, and only what it can express.
"""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from collections.abc import Callable
from typing import Any

MIB = 1 << 20
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
Case = dict[str, Any]


@functools.cache
def _sizes(config: str) -> tuple[int, int]:
    """Parameters in all and of the largest layer, counted by accelerate on a model without storage."""
    from accelerate import init_empty_weights
    from accelerate.utils import calculate_maximum_sizes
    from transformers import AutoConfig, AutoModelForCausalLM

    values = json.loads(config)
    with init_empty_weights():
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**values))
    total, (largest, _) = calculate_maximum_sizes(model)
    return total // 4, largest // 4


def _counted(case: Case) -> tuple[int, int]:
    return _sizes(json.dumps({key: value for key, value in case["config"].items() if value is not None}))


def accelerate(case: Case) -> int | None:
    """`accelerate estimate-memory`: training with Adam takes four times the model. No adapters, no batch."""
    if case["method"] != "full":
        return None
    return 4 * _counted(case)[0] * BYTES[case["weights"]] // max(1, case["devices"])


def deepspeed(case: Case) -> int | None:
    """`estimate_zero2_model_states_mem_needs` and `estimate_zero3_…`, without offload: model states only."""
    from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs as three
    from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs as two

    if case["method"] != "full":
        return None
    total, devices = case["parameters"], max(1, case["devices"])
    if case["sharding"] in ("zero3", "fsdp", "fsdp2"):
        _, gpu, *_ = three(total, _counted(case)[1], devices, 1, cpu_offload=False, cpu_offload_params=False)
    else:
        _, gpu, *_ = two(total, devices, 1, cpu_offload=False)
    return int(gpu)


def fitcheck(case: Case) -> int | None:
    """FitCheck: one device, llama-like shapes, LoRA, QLoRA and full."""
    from fitcheck.config_parser import ModelConfig, _count_params, _parse_fields, _reject_unsupported
    from fitcheck.estimator import TrainingConfig, estimate
    from fitcheck.gpu_db import GPU_DB
    from fitcheck.memory.lora import LORA_TARGETS_FULL, LORA_TARGETS_MINIMAL

    if case["devices"] > 1 or (case["weights"] == "float32" and case["compute"] != "float32"):
        return None
    _reject_unsupported(case["config"], "model")
    fields = _parse_fields(case["config"])
    names = ("hidden_size", "num_layers", "num_attention_heads", "num_kv_heads", "intermediate_size", "vocab_size")
    shape = {name: getattr(fields, name) for name in (*names, "head_dim", "tie_word_embeddings")}
    model = ModelConfig(name="model", num_params=_count_params(fields), **shape)
    attention = [name for name in LORA_TARGETS_FULL if name[0] in "qkvo"]
    targets = {"attention": attention, "qv": list(LORA_TARGETS_MINIMAL)}.get(
        str(case["targets"]), list(LORA_TARGETS_FULL)
    )
    training = TrainingConfig(
        precision={"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}[case["compute"]],
        quantization="nf4" if case["method"] == "qlora" else "none",
        double_quant=bool(case["double"]),
        optimizer={"adamw_bnb_8bit": "adamw-8bit", "sgd": "sgd"}.get(case["optimizer"], "adamw"),
        optimizer_dtype="bf16" if case["method"] == "full" and case["weights"] == "bfloat16" else "fp32",
        batch_size=case["micro"],
        seq_len=case["length"],
        lora_rank=None if case["method"] == "full" else case["rank"],
        lora_targets=targets,
        grad_checkpoint=case["checkpointing"],
        flash_attn=case["attention"] != "eager",
        grad_accum_steps=case["accumulation"],
    )
    return int(estimate(model, training, GPU_DB["a100-80"]).total_mib * MIB)


def preflight(case: Case) -> int | None:
    """torch-preflight: adapters as a frozen share; no quantized base."""
    from torch_preflight.vram import costmodel, types
    from torch_preflight.vram.providers import hub

    if case["method"] == "qlora" or case["sharding"] not in ("none", "zero2", "zero3", "fsdp", "fsdp2"):
        return None
    shape = hub.shape_from_config(case["config"])
    if shape is None:
        return None
    total = costmodel.params_from_transformer_shape(shape)
    profile = types.ModelProfile(
        "model", total, total, "hub", types.Confidence.MEDIUM, types.ModelKind.TRANSFORMER, shape=shape
    )
    mode = types.PrecisionMode
    pure = {"float32": mode.FP32, "bfloat16": mode.PURE_BF16, "float16": mode.PURE_FP16}[case["weights"]]
    kinds = {"adamw_bnb_8bit": "adamw-8bit", "sgd": "sgd", "adafactor": "adafactor"}
    config = types.RunConfig(
        batch_size=case["micro"],
        seq_len=case["length"],
        precision=mode.AMP if case["weights"] == "float32" and case["autocast"] else pure,
        optimizer=types.OptimizerKind(kinds.get(case["optimizer"], "adamw")),
        gradient_checkpointing=case["checkpointing"],
        flash_attention=case["attention"] != "eager",
        accumulation_steps=case["accumulation"],
        world_size=max(1, case["devices"]),
        sharding=types.Sharding({"none": "none", "zero2": "zero-2"}.get(case["sharding"], "zero-3")),
        frozen_fraction=0.0 if case["method"] == "full" else 1 - case["trainable"] / total,
    )
    return int(costmodel.estimate(profile, config).total)


def llm_analysis(case: Case) -> int | None:
    """llm-analysis: mixed precision with Adam, by Megatron's formulas; no adapters."""
    import logging

    from llm_analysis import analysis, config

    logging.disable(logging.CRITICAL)
    if case["method"] != "full" or (case["weights"] == "float32" and not case["autocast"]):
        return None
    given = case["config"]
    model = config.ModelConfig(
        name="model",
        num_layers=given["num_hidden_layers"],
        n_head=given["num_attention_heads"],
        hidden_dim=given["hidden_size"],
        vocab_size=given["vocab_size"],
        max_seq_len=given.get("max_position_embeddings"),
        num_key_value_heads=given.get("num_key_value_heads"),
        ffn_embed_dim=given["intermediate_size"],
        expansion_ratio=given["intermediate_size"] / given["hidden_size"],
        model_type=given.get("model_type"),
    )
    devices = max(1, case["devices"])
    zero = {"zero2": 2, "zero3": 3, "fsdp": 3, "fsdp2": 3}.get(case["sharding"], 0)
    found = analysis.LLMAnalysis(
        model,
        config.get_gpu_config_by_name("a100-sxm-80gb"),
        config.get_dtype_config_by_name("w16a16e16"),
        config.ParallelismConfig(dp_size=devices, sp_size=1),
    ).training(
        batch_size_per_gpu=case["micro"],
        gradient_accumulation_steps=1,
        seq_len=case["length"],
        activation_recomputation=analysis.ActivationRecomputation(2 if case["checkpointing"] else 0),
        ds_zero=analysis.DSZeRO(zero),
        flash_attn=case["attention"] != "eager",
        mlp_gated_linear_units=given.get("hidden_act") in (None, "silu"),
    )
    parts = ("weight", "gradient", "optimizer_state", "activation")
    return int(sum(found[f"{part}_memory_per_gpu"] for part in parts))


PEERS: dict[str, Callable[[Case], int | None]] = {
    "accelerate": accelerate,
    "deepspeed": deepspeed,
    "fitcheck-llm": fitcheck,
    "torch-preflight": preflight,
    "llm-analysis": llm_analysis,
}


def main() -> None:
    """Answer every line; a peer that raises has no answer, and the first reason of each is told on stderr."""
    told: dict[str, str] = {}
    for line in sys.stdin:
        case = json.loads(line)
        answer: dict[str, Any] = {"name": case["name"]}
        for name, ask in PEERS.items():
            try:
                with contextlib.redirect_stdout(sys.stderr):
                    answer[name] = ask(case)
            except Exception as error:
                told.setdefault(name, f"{name}: {type(error).__name__}: {error}")
                answer[name] = None
        print(json.dumps(answer), flush=True)
    for reason in told.values():
        print(reason[:300], file=sys.stderr)


if __name__ == "__main__":
    main()
