"""How values of a run are written in the formats' own words."""

from __future__ import annotations

import pytest

from trainlint.formats.spelling import key_for, spell


@pytest.mark.parametrize(
    ("format_name", "syntax", "path", "value", "key", "words"),
    [
        ("hf-trainer", "yaml", "batch.micro", 2, "", "`per_device_train_batch_size: 2`"),
        ("hf-trainer", "yaml", "batch.micro", 2, "per_gpu_train_batch_size", "`per_gpu_train_batch_size: 2`"),
        ("hf-trainer", "json", "checkpointing.kind", "full", "", "`gradient_checkpointing: true`"),
        ("hf-trainer", "yaml", "quantization.bits", 4, "", "`load_in_4bit: true`"),
        ("hf-trainer", "yaml", "quantization.bits", 3, "", None),
        ("trl", "shell", "checkpointing.kind", "full", "", "`--gradient_checkpointing True`"),
        ("trl", "yaml", "method", "qlora", "", "`use_peft: true` and `load_in_4bit: true`"),
        ("trl", "yaml", "kernels", "liger", "", "`use_liger_kernel: true`"),
        ("python-script", "python", "checkpointing.kind", "full", "", "`gradient_checkpointing=True`"),
        ("python-script", "python", "optimizer.name", "adamw_bnb_8bit", "", '`optim="adamw_bnb_8bit"`'),
        ("mlx-lm", "yaml", "checkpointing.kind", "full", "", "`grad_checkpoint: true`"),
        ("mlx-lm", "yaml", "optimizer.name", "adamw_bnb_8bit", "", None),
        ("axolotl", "yaml", "method", "lora", "", "`adapter: lora`"),
        ("axolotl", "yaml", "activation_offload", True, "", "`activation_offloading: true`"),
        ("hf-trainer", "yaml", "activation_offload", True, "", None),
        ("trl", "yaml", "adapter.targets", ["q_proj"], "", None),
        ("torchtune", "yaml", "checkpointing.kind", "full", "", "`enable_activation_checkpointing: true`"),
        ("torchtitan", "toml", "batch.micro", 1, "", "`training.local_batch_size = 1`"),
        ("a-plugin", "yaml", "batch.micro", 1, "", None),
    ],
)
def test_spelling(format_name: str, syntax: str, path: str, value: object, key: str, words: str | None) -> None:
    assert spell(format_name, syntax, path, value, key) == words


def test_the_key_of_a_path_is_the_one_that_is_documented() -> None:
    assert key_for("hf-trainer", "batch.micro") == "per_device_train_batch_size"
    assert key_for("mlx-lm", "precision.weights") == ""
