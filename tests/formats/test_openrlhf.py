"""OpenRLHF's arguments, flat and dotted."""

from __future__ import annotations

from .drafting import draft, fragments, options

SFT = (
    "deepspeed --module openrlhf.cli.train_sft --max_len 2048 --pretrain meta-llama/Meta-Llama-3-8B \\\n"
    "  --train_batch_size 256 --micro_train_batch_size 2 --zero_stage 2 --bf16 --flash_attn \\\n"
    "  --packing_samples --gradient_checkpointing --learning_rate 5e-6\n"
)
PPO = (
    "ray job submit --address=http://127.0.0.1:8265 -- python3 -m openrlhf.cli.train_ppo_ray \\\n"
    "  --actor.model_name_or_path Qwen/Qwen3-4B --actor.num_gpus_per_node 8 --actor.num_nodes 1 \\\n"
    "  --train.micro_batch_size 2 --train.batch_size 128 --ds.zero_stage 3 --ds.param_dtype bf16 --ds.adam_offload\n"
)


def test_supervised_fine_tuning() -> None:
    made = draft(SFT, file="sft.sh", known={"parallel.world": 8})
    wanted = {
        "framework": "openrlhf",
        "objective": "sft",
        "model.id": "meta-llama/Meta-Llama-3-8B",
        "method": "full",
        "batch.micro": 2,
        "batch.accumulation": 16,
        "length.max": 2048,
        "length.padding_free": True,
        "attention": "flash",
        "checkpointing.kind": "full",
        "checkpointing.reentrant": False,
        "precision.weights": "bfloat16",
        "precision.master": "float32",
        "sharding.kind": "zero2",
        "optimizer.lr": 5e-6,
    }
    assert {path: made.get(path) for path in wanted} == wanted
    assert made.values["batch.micro"].key == "--micro_train_batch_size"


def test_dotted_arguments_behind_ray() -> None:
    made = draft(PPO, file="ppo.sh")
    wanted = {
        "objective": "ppo",
        "reference": "copy",
        "batch.micro": 2,
        "parallel.data": 8,
        "batch.accumulation": 8,
        "sharding.kind": "zero3",
        "sharding.offload_optimizer": "cpu",
        "precision.weights": "bfloat16",
    }
    assert {path: made.get(path) for path in wanted} == wanted
    assert made.values["sharding.kind"].key == "--ds.zero_stage"


def test_lora_has_a_rank() -> None:
    made = draft(SFT.replace("--bf16", "--bf16 --lora_rank 64"), file="sft.sh")
    assert (made.get("method"), made.get("adapter.targets")) == ("lora", ("all-linear",))
    assert draft(SFT.replace("--bf16", "--bf16 --lora_rank 0"), file="sft.sh").get("method") == "full"


def test_without_a_dtype_the_release_decides() -> None:
    text = SFT.replace("--bf16 ", "")
    assert options(draft(text, file="sft.sh"), "precision.bf16") == {True, False}
    assert draft(text, file="sft.sh", openrlhf="0.8.11").get("precision.compute") == "float32"


def test_arguments_in_a_file() -> None:
    text = "pretrain: a/b\nmicro_train_batch_size: 2\nzero_stage: 3\nadam_offload: true\nbf16: true\n"
    assert draft(text).get("sharding.kind") == "zero3"


def test_serving_trains_nothing() -> None:
    assert not fragments("python -m openrlhf.cli.serve_rm --reward_pretrain a/b --port 5000 --bf16\n", "serve.sh")
