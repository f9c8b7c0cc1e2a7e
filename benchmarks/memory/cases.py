"""Cases with a measured or simulated peak, from two kinds of JSON lines.

Simulated: `id`, `hf_config`, `setup` (knobs), `peak_bytes`. Published: `id`, `source`, `model`, what was set, and
`observed` (`kind`, `value_gib`). What a row leaves open stays open; a row that says too little is no case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GIB = 1 << 30
WEIGHTS = {
    "fp32": ("float32", "float32", False), "bf16_autocast": ("float32", "bfloat16", True),
    "fp16_autocast": ("float32", "float16", True), "pure_bf16": ("bfloat16", "bfloat16", False),
    "bf16w_autocast": ("bfloat16", "bfloat16", True), "pure_fp16": ("float16", "float16", False),
}  # fmt: skip
TARGETS = {"all": "all-linear", "attn": "attention", "qv": "qv"}
SHARDING = {
    "none": "none", "fsdp full_shard": "fsdp", "fsdp": "fsdp", "fsdp2": "fsdp2", "zero2": "zero2", "zero3": "zero3",
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A run file's words, the model's config where the row has it, and what was seen: bytes, or an out-of-memory."""

    name: str
    source: str
    kind: str
    run: dict[str, Any]
    seen: int | None
    room: int | None = None
    config: dict[str, Any] | None = None


def simulated(path: Path) -> Iterator[Case]:
    """Rows of one device, plain losses and objectives: what every estimator here may be asked."""
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        setup = row["setup"]
        plain = setup.get("algo", "sft") == "sft" and setup.get("loss", "hf") == "hf" and not setup.get("eval_steps")
        if not plain or setup.get("parallel") or setup["tune"] not in ("full", "lora", "qlora"):
            continue
        if row.get("head", "clm") != "clm" or setup.get("dora") or setup.get("modules_to_save") or setup.get("liger"):
            continue
        if setup.get("gc_reentrant") or setup.get("gc_every", 1) > 1 or setup.get("act_offload"):
            continue
        if setup.get("opt_in_bwd") or setup["optim"] not in OPTIMIZERS or not setup.get("set_to_none", True):
            continue
        weights, compute, autocast = WEIGHTS[setup["precision"]]
        run: dict[str, Any] = {
            "trainlint": "run", "model": {"config": "config.json"}, "method": setup["tune"],
            "precision": {"weights": weights, "compute": compute, "autocast": autocast,
                          "grad_scaler": setup["precision"] == "fp16_autocast"},
            "batch": {"micro": setup["micro_batch"], "accumulation": setup.get("grad_accum", 1)},
            "length": {"max": setup["seq"], "padded": setup.get("padded", False)},
            "checkpointing": setup["gc"], "attention": setup["attn"], "optimizer": OPTIMIZERS[setup["optim"]],
            "clip": setup.get("max_grad_norm", 1.0) if setup.get("clip", True) else None,
        }  # fmt: skip
        if setup["tune"] != "full":
            run["adapter"] = {
                "rank": setup.get("lora_r", 16), "targets": TARGETS.get(setup.get("lora_targets"), "all-linear"),
                "dropout": setup.get("lora_dropout", 0.0),
                "dtype": "float32" if setup.get("adapter_fp32", True) else weights,
            }  # fmt: skip
        if setup["tune"] == "qlora":
            run["quantization"] = {
                "bits": 4, "type": "nf4", "double": setup.get("double_quant", True),
                "prepared": setup.get("kbit_prepare", False),
            }  # fmt: skip
        yield Case(row["id"], "simulated", "allocated", run, row["peak_bytes"], None, row["hf_config"])


OPTIMIZERS: dict[str, Any] = {
    "adamw_torch": "adamw_torch", "adamw_foreach": "adamw_torch", "adamw_torch_fused": "adamw_torch_fused",
    "adamw_fused": "adamw_torch_fused", "adamw_8bit": "adamw_bnb_8bit", "sgd_plain": "sgd",
    "sgd": {"name": "sgd", "momentum": 0.9}, "adafactor": "adafactor",
    "adamw_forloop": {"name": "adamw_torch", "foreach": False},
}  # fmt: skip


def published(path: Path) -> Iterator[Case]:
    """What others measured, where method, model, batch, length and checkpointing are said."""
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        run = _published_run(row)
        if run is None or row["observed"]["kind"] == "peak_unified":
            continue
        seen, room = row["observed"]["value_gib"], row["gpu_memory_gb"]
        yield Case(
            re.sub(r"[^\w.-]", "_", row["id"]), row["source"]["repo_or_paper"], row["observed"]["kind"], run,
            int(seen * GIB) if seen else None, int(room * GIB) if room else None,
        )  # fmt: skip


def _dtype(text: str | None) -> str | None:
    names = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "nf4": "bfloat16"}
    return next((name for start, name in names.items() if (text or "").lower().startswith(start)), None)


def _published_run(row: dict[str, Any]) -> dict[str, Any] | None:
    method, weights = row["method"], row["weights_dtype"] or ""
    sharding, optimizer = SHARDING.get(row["sharding"]), row["optimizer"] or ""
    said = row["model"] and row["micro_batch"] and row["seq_len"] and row["activation_checkpointing"] is not None
    held = _dtype(weights)
    if method not in ("full", "lora", "qlora") or not said or sharding is None or held is None:
        return None
    if row["offload"] not in ("none", None) or row["compile"] or (method == "qlora") != weights.startswith("nf4"):
        return None
    if re.search("galore|badam|lomo|in_bwd|adafactor|sgd", optimizer, re.IGNORECASE):
        return None
    compute, fused = row["compute_dtype"] or "", row["fused_ce/liger/chunked_ce"] or "none"
    kernel = row["attention_impl"] or ""
    checkpointing = row["activation_checkpointing"]
    if checkpointing not in (True, False):
        checkpointing = "selective" if "selective" in str(checkpointing) else True
    run: dict[str, Any] = {
        "trainlint": "run", "model": {"id": row["model"]}, "method": method,
        "precision": {"weights": held, "compute": _dtype(compute) or held,
                      "autocast": "autocast" in compute or "amp" in compute},
        "batch": {"micro": row["micro_batch"], "accumulation": row["grad_accum"] or 1},
        "length": {"max": row["seq_len"]}, "checkpointing": checkpointing,
        "attention": "eager" if "eager" in kernel else "flash" if "flash" in kernel else "sdpa",
        "loss": "full" if fused == "none" else "chunked" if "chunk" in fused else "fused",
        "optimizer": _optimizer(optimizer.lower()),
    }  # fmt: skip
    if method != "full":
        run["adapter"] = {"rank": row["lora_rank"] if isinstance(row["lora_rank"], int) else 8}
        run["adapter"]["targets"] = _targets((row["lora_targets"] or "all").lower())
    if method == "qlora":
        run["quantization"] = {"bits": 4, "type": "nf4", "double": "double" in weights}
        run["quantization"]["prepared"] = "peft-bnb" in row["id"]
    if sharding != "none":
        run["sharding"], run["parallel"] = {"kind": sharding}, {"data": row["world_size"] or 1}
    if row["gpu_memory_gb"]:
        run["device"] = {"memory": f"{row['gpu_memory_gb']} GiB", "count": row["world_size"] or 1}
    return run


def _optimizer(text: str) -> str:
    if "8bit" in text or "8-bit" in text:
        return "adamw_bnb_8bit"
    return "adamw_torch_fused" if "fused" in text else "adamw_torch"


def _targets(text: str) -> str | list[str]:
    names = re.findall(r"[a-z_0-9]+", text)
    if text.startswith("all"):
        return "all-linear"
    if names in (["q", "v"], ["q_proj", "v_proj"], ["query", "value"]):
        return "qv"
    return "attention" if names and all(re.match(r"[qkvo](_proj)?$|c_attn$", name) for name in names) else names
